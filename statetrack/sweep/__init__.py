"""Sweeps: many runs from one file, and their results in one table.

This file imports nothing, so that suites can be listed without torch.
"""
