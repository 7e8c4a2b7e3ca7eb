"""What is stored: transitions, episodes, and the files they are read from and written to."""
