"""Runs: a model, its words and its training joined, and the folder that keeps them.

This file imports nothing, so that run folders can be listed without torch.
"""
