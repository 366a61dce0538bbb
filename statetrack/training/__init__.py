"""Training: a population of replicas of one model, in one process.

The trainer knows no folder and no console: it is given batches and yields records. This file
imports nothing, so that `statetrack.training.settings` can be read without torch.
"""
