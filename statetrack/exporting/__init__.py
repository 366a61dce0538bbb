"""Weights in the layouts of the authors' layers, with golden words and a test of kernels.

`layouts` says, one file a layout, how layers and weights are called in other people's code;
`folder` writes what `standalone` needs, which runs without statetrack.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
