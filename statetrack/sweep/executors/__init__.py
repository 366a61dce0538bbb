"""Where the points of a sweep are run: each executor is one file, found by its name."""
