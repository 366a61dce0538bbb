"""Faults on purpose: a disk that fails and a process that is killed at a chosen write.

`disk.Faults` counts what a program changes in a folder, and at one of these points fails as a disk
does, kills the process, or sends it a signal. `processes.run_in_child` runs an action in a forked
process, so that a kill is a real one. The program under test knows nothing of either.
"""
