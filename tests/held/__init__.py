"""Whether training holds weights that are exact to begin with, and sharpens those that are not."""
