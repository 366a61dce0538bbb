"""Training: a population of replicas of one model, in one process.

The trainer knows no task, no folder and no console: it is given batches and yields records.
"""

from statetrack.training.population import Population, Replica
from statetrack.training.settings import TrainSettings
from statetrack.training.trainer import Record, Trainer

__all__ = ["Population", "Record", "Replica", "TrainSettings", "Trainer"]
