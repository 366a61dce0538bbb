"""Can this recurrent architecture track state, and how far?

The public names stand in `__init__.pyi`, with the modules they come from: each is imported when
it is first used, so that `import statetrack` costs nothing, and type checkers see them all.
"""

import lazy_loader

__version__ = "0.3.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
