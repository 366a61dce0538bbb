"""Attacks on what `statetrack.evidence` says, by means of their own.

Machines, networks built by hand, searches and definitions are written here a second time, in plain
Python and numpy: nothing is taken from the code that is attacked. `python -m tests.evidence` makes
all attacks; `tests/test_evidence_soundness.py` makes small ones.
"""
