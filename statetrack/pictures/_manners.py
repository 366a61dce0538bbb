"""The ways in which a task can be drawn."""

from typing import Literal, get_args

Manner = Literal["diagram", "cayley", "panels", "table", "matrix"]
"""How a task can be drawn."""
MANNERS: tuple[Manner, ...] = get_args(Manner)
