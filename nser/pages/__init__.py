"""What every HTML page shares: its frame and scheme, its tables, the style of its charts. Each is one file."""
