"""The five kinds of range that a live worker records, each with its own switch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from stepscope.recording_format.marks import CHECKPOINT, COLLECTIVE, DATA, FORWARD, STEP, MarkKind


class Kind(str, Enum):
    """A kind of range; the value is its name on command lines and in messages."""

    STEP = "step"
    FORWARD = "fp"
    DATA = "dataloader"
    CHECKPOINT = "checkpoint"
    COMMUNICATION = "communication"


@dataclass(frozen=True)
class Names:
    """What a kind is called elsewhere.

    Args:
        switch: Key in `profilingSwitch` (MindCluster).
        mark: Kind of the recorder's marks that its ranges are made of.
    """

    switch: str
    mark: MarkKind


NAMES: dict[Kind, Names] = {
    Kind.COMMUNICATION: Names("CommunicationOperator", COLLECTIVE),
    Kind.STEP: Names("Step", STEP),
    Kind.CHECKPOINT: Names("SaveCheckpoint", CHECKPOINT),
    Kind.FORWARD: Names("FP", FORWARD),
    Kind.DATA: Names("DataLoader", DATA),
}
"""In the order in which MindCluster lists its switches."""
