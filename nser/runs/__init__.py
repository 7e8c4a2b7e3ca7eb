"""A training run: its directory, its checkpoints, and the loop that writes them."""
