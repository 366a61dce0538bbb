"""Compiled loops: recurrences over positions, and what surrounds them, in one pass each.

One family a file, imported when it is first needed, since numba takes time to import. The package
`statetrack.ops.native` calls them; it alone imports them.
"""
