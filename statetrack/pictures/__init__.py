"""Tasks as pictures: state diagrams, Cayley graphs, transition tables; torch-free."""

from typing import Literal, get_args

Manner = Literal["diagram", "cayley", "table"]
"""How a task can be drawn."""
MANNERS: tuple[Manner, ...] = get_args(Manner)
