"""Writes `ttt-linear.safetensors`: TTT-Linear of the authors' PyTorch code, one token per step.

`--checkout` is a checkout of test-time-training/ttt-lm-pytorch.
"""

import importlib
import json
import sys
from types import SimpleNamespace

import torch

from tests.references.record._fla import arguments
from tests.references.recorded import save

SETTINGS = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "mini_batch_size": 1,
    "ttt_base_lr": 1.0,
    "rope_theta": 10000.0,
    "share_qk": False,
    "use_gate": False,
    "conv_kernel": 4,
    "scan_checkpoint_group_size": 0,
}

if __name__ == "__main__":
    options = arguments()
    sys.path.insert(0, str(options.checkout))
    torch.manual_seed(0)
    layer = importlib.import_module("ttt").TTTLinear(SimpleNamespace(**SETTINGS), 0).double().eval()
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if name != "learnable_token_idx":  # the weight of a mini-batch's only token stays 1
                parameter.add_(0.3 * torch.randn_like(parameter))
        inputs = torch.randn(2, 13, 16, dtype=torch.float64)
        outputs = layer(inputs, position_ids=torch.arange(13).unsqueeze(0))
    weights = {f"weights.{name}": value for name, value in layer.state_dict().items()}
    about = {
        "repository": "test-time-training/ttt-lm-pytorch",
        "commit": "6990c68c979a0dd4d8fca41cc93e11e83d89914e",
        "files": "ttt.py (TTTLinear)",
        "licence": "MIT",
        "settings": json.dumps(SETTINGS),
        "remark": "run with the parts of the file that the forward pass of TTTLinear uses",
    }
    save(options.out, {"inputs": inputs, "outputs": outputs, **weights}, about)
