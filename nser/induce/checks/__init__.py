"""The checks of a rule that need data, one file each: what it fires on, what it adds, its thresholds, conflicts."""
