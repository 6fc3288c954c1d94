"""A job: recordings that form one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stepscope.run.supplements import Supplement
from stepscope.sources.registry import family_of
from stepscope.store.recording import Recording
from stepscope.tables.issues import Issue


@dataclass(frozen=True)
class Member:
    """A recording and its rank in the job, and what another recording of the rank supplies."""

    rank: int
    origin: str
    recording: Recording
    supplement: Supplement | None = None


@dataclass
class Job:
    """Recordings that form one run; `newest` orders jobs (ns since the epoch)."""

    members: list[Member]
    name: str
    path: Path
    newest: int
    issues: list[Issue]
    world_size: int | None = None

    @property
    def family(self) -> str:
        """Family of the format of its recordings."""
        return family_of(self.members[0].recording.source)
