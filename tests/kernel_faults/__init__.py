"""Kernels with known faults: which does a semantic test find, and which a test of closeness?"""
