"""The model's own names, for any model: its whole state dict."""

from statetrack.exporting.layer import LAYOUTS, Layout

LAYOUTS.register("safetensors")(Layout("the model's own names", {}, whole=True))
