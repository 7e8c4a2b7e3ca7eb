"""One adapter for each host: libraries that hold the data and train, while a `ReplayIndex` decides what on."""
