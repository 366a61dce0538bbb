"""Fuzzers: files and command lines that are not what they should be, and must be refused clearly.

A target is one module of this package: `harness.Target` says what it has, `TARGETS` in `targets`
lists them, and a new format is one more module there. `python -m tests.fuzz --help` runs them.
"""
