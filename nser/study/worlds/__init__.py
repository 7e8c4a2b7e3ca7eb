"""What studies know of a world beforehand, by the name of its vocabulary: files, see `nser.study.beforehand`."""
