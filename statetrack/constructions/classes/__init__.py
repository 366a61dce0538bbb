"""Constructions, one file for each class of recurrence, or for a few that share one."""
