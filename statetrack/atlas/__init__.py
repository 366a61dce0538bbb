"""The atlas: what the algebra says of many machines, and what trained models do on them.

This file imports nothing, so that machine files can be listed without NumPy.
"""
