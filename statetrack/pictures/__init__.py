"""Tasks as pictures: state diagrams, Cayley graphs, panels, tables, matrices; torch-free."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
