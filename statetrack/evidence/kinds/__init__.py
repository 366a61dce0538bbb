"""The kinds of evidence, one file each: what is found, its search, its lines and its figures.

A file is a dataclass that `EVIDENCE` registers (see `records.Evidence`); importing it imports
neither torch nor numpy, so that the evidence of a run is read, and said, without them.
"""
