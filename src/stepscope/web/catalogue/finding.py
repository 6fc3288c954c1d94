"""The inputs below one served directory: which there are, which are read, and which have to wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.ingest import find_stored
from stepscope.paths import lies_within, shown
from stepscope.sources.base import Input
from stepscope.sources.discover import Discovered, discover
from stepscope.store import Recording, Store
from stepscope.tables.issues import Issue
from stepscope.web.catalogue.survey import Facts, Rest, Survey, survey

OUTSIDE = "uses a file that lies elsewhere, so it is not read"
REMEDY = "Put a copy in the place of the link, or serve the directory that it leads to as well"
_LOST = "was read, but could not be stored"
_LOST_REMEDY = "Free some disk space, or set STEPSCOPE_CACHE to another directory"

Name = tuple[str, Path, str]
"""What tells inputs of one root apart: source, path, label."""


@dataclass
class Slot:
    """An input, and how far it has come.

    Args:
        item: The input.
        facts: Of its files, when it was last looked up in the store.
        key: Identifies its content.
        recording: What was read of it, possibly before its files changed.
        refused: Why it cannot be read.
        state: `written`: its files are changing; `pending`: to be read; `done`.
    """

    item: Input
    facts: Sequence[Facts | None] = ()
    key: str = ""
    recording: Recording | None = None
    refused: Issue | None = None
    state: str = "written"

    @property
    def home(self) -> Path:
        """The directory that its job lies in, as far as its place tells."""
        return self.item.path.parent


@dataclass
class Below:
    """All inputs below one root.

    Args:
        root: The served directory.
        within: The directories out of which no link is followed.
    """

    root: Path
    within: Sequence[Path]
    seen: Survey = field(default_factory=Survey)
    found: Discovered = field(default_factory=Discovered)
    slots: dict[Name, Slot] = field(default_factory=dict)
    reading: set[Name] = field(default_factory=set)
    progress: float = 0.0
    _rest: Rest = field(default_factory=Rest)
    _is_new: bool = True

    def look(self, store: Store) -> bool:
        """Look for changes; returns whether there are any that matter."""
        seen = survey(self.root, self.within, store.directory)
        self._rest.note(seen)
        has_changed = self._is_new or seen != self.seen
        self.seen, self._is_new = seen, False
        if has_changed:
            self._find()
        elif all(slot.state != "written" for slot in self.slots.values()):
            return False
        return self._take(store) or has_changed

    def forget(self, name: Name) -> None:
        """Look an input up again, e.g. as the store has lost it."""
        slot = self.slots.get(name)
        if slot is not None:
            slot.facts, slot.recording, slot.state = (), None, "written"

    def batch(self) -> list[Name]:
        """The inputs to read next, those of one directory: the one with the least to read."""
        homes: dict[Path, list[Name]] = defaultdict(list)
        for name, slot in self.slots.items():
            if slot.state == "pending" and name not in self.reading:
                homes[slot.home].append(name)
        return min(homes.values(), key=self._weight, default=[])

    def settle(
        self, names: Sequence[Name], store: Store, refused: Mapping[Name, Issue], problems: Sequence[str]
    ) -> None:
        """Take what was read of some inputs.

        Args:
            refused: Those that could not be read, and why.
            problems: Of the store.
        """
        self.reading.difference_update(names)
        there = {self.slots[name].item: name for name in names if name in self.slots}
        stored = find_stored(list(there), store)
        for item, name in there.items():
            slot = self.slots[name]
            if slot.state != "pending" or stored.keys.get(item) != slot.key:
                slot.state = "written"  # it has changed meanwhile
                continue
            slot.recording, slot.state = stored.recordings.get(item), "done"
            slot.refused = None if slot.recording else refused.get(name) or stored.refused.get(item)
            if slot.recording is None and slot.refused is None:
                why = f"{_LOST} ({problems[0].partition(': ')[2] or problems[0]})" if problems else _LOST
                slot.refused = Issue("error", shown(item.path), why, _LOST_REMEDY)

    @property
    def problems(self) -> list[Issue]:
        """What could not be read of files that look like recordings, besides inputs."""
        return [issue for issue in self.found.problems if issue.severity == "error"]

    def _weight(self, names: Sequence[Name]) -> tuple[int, str]:
        return sum(self.seen.size_bytes(self.slots[name].item.files) for name in names), str(names[0])

    def _find(self) -> None:
        try:
            self.found = discover([self.root], within=self.within)
        except StepscopeError:  # it is gone, for now
            self.found = Discovered()
        old, self.slots = self.slots, {}
        for item in self.found.inputs:
            outside = next((file for file in item.files if not self._lies_inside(file)), None)
            if outside is not None:
                self.found.problems.append(Issue("error", shown(outside), OUTSIDE, REMEDY))
                continue
            name = (item.source, item.path, item.label)
            slot = self.slots[name] = old.get(name, Slot(item))
            slot.item = item

    def _lies_inside(self, file: Path) -> bool:
        """Whether no link leads from a file to elsewhere; the survey has no such files."""
        return str(file) in self.seen.files or lies_within(file, self.within)

    def _take(self, store: Store) -> bool:
        """Look up inputs that have come to rest since they were last looked up; returns whether any did."""
        settled = {slot.item: slot for slot in self._settled()}
        if not settled:
            return False
        stored = find_stored(list(settled), store)
        for item, slot in settled.items():
            last, slot.key = slot.key, stored.keys.get(item, "")
            slot.state = "done"
            if item in stored.recordings:
                slot.recording, slot.refused = stored.recordings[item], None
            elif item in stored.refused:
                slot.recording, slot.refused = None, stored.refused[item]
            elif slot.refused is None or slot.key != last:
                slot.state = "pending"
        return True

    def _settled(self) -> Iterator[Slot]:
        for slot in self.slots.values():
            facts = [self.seen.files.get(str(file)) for file in slot.item.files]
            if slot.state != "written" and facts == slot.facts:
                continue
            if self._rest.is_written(slot.item.files):
                slot.state = "written"
            else:
                self._rest.start_anew(slot.item.files)
                slot.facts = facts
                yield slot
