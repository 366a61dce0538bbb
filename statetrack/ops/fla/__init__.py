"""Kernels of flash-linear-attention in place of torch's own operations, where they can run.

`choice` decides which of the two runs, `calling` calls a kernel, and `adapters` has one function
for each recurrence, with the arguments of the function of the same name in `statetrack.ops`.
"""

from statetrack.ops.fla.choice import KernelChoice, by_kernel, kernel_for, why_not

__all__ = ["KernelChoice", "by_kernel", "kernel_for", "why_not"]
