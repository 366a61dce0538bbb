"""Writes `hgrn.safetensors`: the complex layer of the authors' package hgru-pytorch.

`--checkout` is a checkout of Doraemonzzz/hgru-pytorch. Its loop in torch is run (`forward_naive`);
the CUDA extension and the helper that prints arguments are replaced by stand-ins.
"""

import importlib
import json
import sys
from types import ModuleType, SimpleNamespace

import torch
from torch.nn import functional

from tests.references.record._fla import arguments
from tests.references.recorded import save

SETTINGS = {"embed_dim": 8}
LOWER_BOUND = 0.25

if __name__ == "__main__":
    options = arguments()
    package = ModuleType("hgru")
    package.__path__ = [str(options.checkout / "hgru")]
    helpers, extension = ModuleType("hgru.helpers"), ModuleType("hgru.hgru_cuda")
    helpers.get_activation_fn = lambda name: getattr(functional, name)  # type: ignore[attr-defined]
    helpers.print_params = lambda **_: None  # type: ignore[attr-defined]
    extension.HgruFunction = SimpleNamespace(apply=None)  # type: ignore[attr-defined]
    for module in (package, helpers, extension):
        sys.modules[module.__name__] = module
    layer = importlib.import_module("hgru.hgru1d").Hgru1d(**SETTINGS).double()
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        inputs = torch.randn(2, 13, 8, dtype=torch.float64)
        outputs = layer.forward_naive(inputs.transpose(0, 1), LOWER_BOUND).transpose(0, 1)
    weights = {f"weights.{name}": value for name, value in layer.state_dict().items()}
    about = {
        "repository": "Doraemonzzz/hgru-pytorch",
        "commit": "0d5566297760f08b8f4b1ea67e76202d50be5fa9",
        "files": "hgru/hgru1d.py (Hgru1d.forward_naive)",
        "licence": "none stated",
        "settings": json.dumps(SETTINGS | {"lower_bound": LOWER_BOUND}),
        "remark": "run with the constructor and forward_naive of the class alone; stand-ins for "
        "hgru.helpers and the CUDA extension hgru.hgru_cuda",
    }
    save(options.out, {"inputs": inputs, "outputs": outputs, **weights}, about)
