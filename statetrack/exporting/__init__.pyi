"""The public names of `statetrack.exporting`: other packages import these, from here alone."""

from .folder import Exported as Exported
from .folder import export as export
from .layer import LAYOUTS as LAYOUTS
from .layer import AuthorsLayer as AuthorsLayer
