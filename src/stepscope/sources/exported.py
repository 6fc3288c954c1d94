"""Files that stepscope exported from its own recordings: they repeat the recording."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from stepscope.paths import shown
from stepscope.recording_format.export_list import EARLIER, ExportList, is_list_name
from stepscope.recording_format.layout import ABOUT, RECORDINGS, rank_in_name
from stepscope.recording_format.reading import read_export_list
from stepscope.sources.base import Input
from stepscope.sources.classic.files import is_known, kind_of
from stepscope.sources.side_files import peek_object
from stepscope.tables.issues import Issue

_TREE = re.compile(r"rank-(\d+)_\d{14}_ascend_ms(?=/|$)")
_COPIES = re.compile(r"windows_(\d+)")
_NUMBER = re.compile(r".*_(\d+)(?:_[a-z_]+)?\.\w+")
_FOLDER = "host_info"
_MOST_NAMED = 3


@dataclass
class Exported:
    """What of a directory was made from recordings.

    Args:
        passed: Names of entries that are not to be read.
        issues: What to report of them.
        made: Paths of entries that are read, unless the recording that they were made from is found elsewhere: by the
            name of that recording.
    """

    passed: set[str] = field(default_factory=set)
    issues: list[Issue] = field(default_factory=list)
    made: dict[Path, str] = field(default_factory=dict)


def exported_in(directory: Path, names: Sequence[str]) -> Exported:
    """Leave out files that stepscope exported from its own recordings.

    Each `exported-*.json` lists the files that were made from one recording. While that is there, it alone counts.
    If the recording is gone, they are read instead: of the two forms with the same content, the `_ascend_ms`
    directory is read, as it has more. An interrupted export is not read. Files of a recorded rank that no
    list has come from an interrupted export, or another profiler recorded the same run.
    """
    found = Exported()
    listed: set[str] = set()
    for name in names:
        if (content := read_export_list(directory / name)) is None:
            continue
        found.passed.add(name)
        listed |= content.entries
        if _is_there(directory, content.recording):
            found.passed |= content.entries
        elif not content.complete:
            found.passed |= content.entries
            problem = "lists files of an unfinished export; they are not read"
            remedy = "Copy the recording that it names, or analyse it again"
            found.issues.append(Issue("error", shown(directory / name), problem, remedy))
        else:
            repeated = _repeated(directory, content)
            found.passed |= repeated
            recording = PurePosixPath(content.recording).name
            found.made |= {directory / entry: recording for entry in content.entries - repeated}
    _pass_leftovers(directory, [name for name in names if name not in listed | found.passed], found)
    return found


def made_elsewhere(inputs: Iterable[Input], made: Mapping[Path, str]) -> set[Input]:
    """Those of some inputs that were made from recordings which are among the others.

    Args:
        inputs: All inputs.
        made: `Exported.made` of all directories.
    """
    known = list(inputs) if made else []
    recordings = {item.path.name for item in known}
    originals = set(made.values())

    def repeats(item: Input) -> bool:
        data = [file for file in item.files if not is_list_name(file.name)] or [item.path]
        of = (next((made[place] for place in (file, *file.parents) if place in made), None) for file in data)
        return all(recording in recordings for recording in of)

    return {item for item in known if item.path.name not in originals and repeats(item)}


def _repeated(directory: Path, content: ExportList) -> set[str]:
    """Classic files of a list whose `_ascend_ms` directory is whole."""
    tree = [file for file in content.files if _TREE.match(file)]
    if not tree or not all((directory / file).is_file() for file in tree):
        return set()
    others = (name for name in content.entries if not _TREE.fullmatch(name))
    return {name for name in others if name == _FOLDER or _rank_of(name) is not None}


def _pass_leftovers(directory: Path, names: Sequence[str], found: Exported) -> None:
    """Skip files of ranks with a recording in the directory, or above the one that older files were moved to."""
    candidates = {name: rank for name in names if (rank := _rank_of(name)) is not None}
    ranks = _recorded_ranks(directory) if candidates else set()
    left = sorted(name for name, rank in candidates.items() if rank in ranks)
    if not left:
        return
    found.passed |= {*left, *({_FOLDER} & set(names))}
    some = ", ".join(left[:_MOST_NAMED]) + (" and others" if len(left) > _MOST_NAMED else "")
    problem = f"{len(left)} files and folders next to recordings of the same ranks are not read: {some}"
    remedy = "Nothing to do if an analysis was interrupted; move files of another profiler elsewhere to open them"
    found.issues.append(Issue("note", shown(directory), problem, remedy))


def _rank_of(name: str) -> int | None:
    """The rank in the name of a file, or folder, of a form that exports have; None for any other name."""
    for pattern in (_TREE, _COPIES):
        if match := pattern.fullmatch(name):
            return int(match[1])
    if kind := kind_of(name):
        return kind[1]
    match = _NUMBER.fullmatch(name) if is_known(name) else None
    return int(match[1]) if match else None


def _recorded_ranks(directory: Path) -> set[int]:
    """Ranks of the recordings that belong to a directory."""
    ranks: set[int] = set()
    for place in (directory, directory.parent.parent) if directory.parent.name == EARLIER else (directory,):
        for about in (place / RECORDINGS).glob(f"rank-*/{ABOUT}"):
            if (named := rank_in_name(about.parent.name)) is not None:
                ranks.add(named)
            rank = peek_object(about).get("rank")
            if isinstance(rank, int):
                ranks.add(rank)
    return ranks


def _is_there(directory: Path, recording: str) -> bool:
    """Whether the recording is at the listed place, or at that of before the files were moved to `earlier/<stamp>`."""
    return any((place / recording / ABOUT).is_file() for place in (directory, *directory.parents[:2]))
