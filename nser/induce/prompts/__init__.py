"""Templates of prompts, as files."""
