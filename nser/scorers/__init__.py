"""Who gives an item its relevance."""
