"""Runs: a model, its words and its training, and the folder in which they are kept.

This file imports nothing, so that run folders can be listed without torch.
"""
