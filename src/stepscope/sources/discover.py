"""Finding inputs under files and directories, by content, without reading whole files."""

from __future__ import annotations

import os
import stat
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from stepscope.errors import StepscopeError, UnreadableInput
from stepscope.paths import lies_within, shown
from stepscope.plugins import FAILURES
from stepscope.sources.base import Found, Input, Source
from stepscope.sources.exported import exported_in, made_elsewhere
from stepscope.sources.head import broken_at, is_json, read_head
from stepscope.sources.registry import all_sources, offered_sources
from stepscope.tables.issues import Issue

_MAX_ALIKE = 20
_PEEK_BYTES = 512
_NOTHING = Found(())
_READ = (
    "It reads traces of the PyTorch profiler, profiles of Ascend and MindSpore, and dumps of PyTorch's flight recorder"
)
_TIMELINE = b"stepscope timeline"
"""Near the start of each timeline that stepscope wrote, in both formats..."""
_LOOKED_AT = 400
"""... within this many bytes."""
_SHOW = "Show it with `stepscope view`, or pass the recording that it was made from"
_TRACE_ENDINGS = (".json", ".json.gz", ".db")
_UNPACKERS = {
    ".json.zst": "unzstd",
    ".json.xz": "unxz",
    ".json.bz2": "bunzip2",
    ".json.lz4": "unlz4",
    ".json.zip": "unzip",
}


@dataclass
class Discovered:
    """Contents of some paths: inputs, unreadable files that look like one, and the number of other files."""

    inputs: list[Input] = field(default_factory=list)
    problems: list[Issue] = field(default_factory=list)
    skipped: int = 0


def discover(
    paths: Iterable[Path | str],
    sources: Sequence[Source] | None = None,
    *,
    within: Sequence[Path] | None = None,
) -> Discovered:
    """Find the inputs under `paths`, at any depth.

    Directories with a leading dot are skipped unless they are named themselves.

    Args:
        paths: Files and directories in any mix.
        sources: The readers to try; all known ones by default.
        within: Links that lead out of these directories are not followed; by default, all are.

    Raises:
        StepscopeError: If a path does not exist or none is given.
    """
    starts = [Path(path).expanduser().absolute() for path in paths]
    if not starts:
        raise StepscopeError("no path given. Pass a trace file or a directory of recordings")
    for start in starts:
        if not start.exists():
            raise StepscopeError(f"{shown(start)}: no such file or directory. Check the path")
    walk = _Walk(all_sources() if sources is None else sources, within)
    for start in starts:
        walk.start(start)
    walk.drop_repeated()
    walk.count_alike()
    return walk.found


def internal_error(path: Path, error: BaseException, reader: str) -> Issue:
    """The issue for an unexpected failure of a reader; with `--debug` its traceback is printed."""
    if os.environ.get("STEPSCOPE_DEBUG"):
        traceback.print_exception(error)
    problem = f"internal error of the reader {reader} ({type(error).__name__}: {error})"
    remedy = "Run the command again with --debug and report the output"
    return replace(_error(path, problem, remedy), trace="".join(traceback.format_exception(error)))


def unread(error: UnreadableInput) -> Issue:
    """The issue of an input that its reader cannot read at all."""
    return Issue("error", error.path, error.problem, error.remedy)


def unreadable(path: Path, error: OSError) -> Issue:
    """The issue of a path that the system does not let us read."""
    denied = isinstance(error, PermissionError)
    remedy = "Ask the owner for read permission" if denied else "Check the file and its disk"
    return _error(path, f"cannot be read: {error.strerror or error}", remedy)


def _error(path: Path, problem: str, remedy: str) -> Issue:
    return Issue("error", shown(path), problem, remedy)


class _Walk:
    """A walk over the given paths, asking the readers on its way."""

    def __init__(self, sources: Sequence[Source], within: Sequence[Path] | None = None) -> None:
        self.sources = sources
        self._within = within
        self._ours = [source for source in sources if source not in offered_sources()]
        self.found = Discovered()
        self._seen: set[tuple[int, int]] = set()
        self._made: dict[Path, str] = {}
        self._alike: Counter[Issue] = Counter()

    def start(self, path: Path) -> None:
        """Walk from one path. Linked directories come last, so that a real path goes before a link to it."""
        if not path.is_dir():
            self._file(path, asked_for=True)
            return
        real, linked = deque([path]), deque[Path]()
        while real or linked:
            directory = real.popleft() if real else linked.popleft()
            for entry in self._directory(directory):
                (linked if entry.is_symlink() else real).append(Path(entry.path))

    def drop_repeated(self) -> None:
        """Drop what was made from a recording that was found as well: a job and its exports are one run."""
        repeated = made_elsewhere(self.found.inputs, self._made)
        self.found.inputs = [item for item in self.found.inputs if item not in repeated]
        self.found.skipped += len(repeated)

    def count_alike(self) -> None:
        """Add the number of problems of each kind that were not listed."""
        for kind, count in self._alike.items():
            if count > _MAX_ALIKE:
                left = count - _MAX_ALIKE
                more = f"{left} more files with the same problem: {kind.problem}"
                self.found.problems.append(replace(kind, file="(several files)", problem=more, inputs=left))

    def _directory(self, directory: Path) -> list[os.DirEntry[str]]:
        """Try a directory as a whole, then each of its files; returns the subdirectories to visit."""
        try:
            if not self._is_new(directory.stat()):
                return []
            with os.scandir(directory) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            self._report(unreadable(directory, error))
            return []
        entries = [entry for entry in entries if self._stays(entry)]
        exported = exported_in(directory, [entry.name for entry in entries])
        self._made |= exported.made
        for issue in exported.issues:
            self._report(issue)
        self.found.skipped += len(exported.passed)
        entries = [entry for entry in entries if entry.name not in exported.passed]
        names = [entry.name for entry in entries]
        left = set(self._unclaimed(directory, names))
        below = []
        for entry in (entry for entry in entries if entry.name in left):
            if _is_directory(entry):
                if not entry.name.startswith("."):
                    below.append(entry)
            else:
                self._file(Path(entry.path))
        return below

    def _unclaimed(self, directory: Path, names: Sequence[str]) -> Sequence[str]:
        """The names in a directory that no reader takes. What one leaves may be a recording for another."""
        found = self._ask(directory, lambda source: source.find(directory, names), names)
        if found is None:
            return names
        return self._unclaimed(directory, found.rest) if 0 < len(found.rest) < len(names) else found.rest

    def _file(self, file: Path, *, asked_for: bool = False) -> None:
        """Try one file; one that the user asked for is not skipped silently."""
        try:
            info = file.stat()
            if not self._is_new(info):
                return
            if stat.S_ISREG(info.st_mode) and info.st_size:
                head = read_head(file)
                # A small timeline begins with ranges that readers take for a profiler's.
                is_made = head is not None and is_json(head) and _TIMELINE in head[:_LOOKED_AT]
                if head is not None and not is_made and self._ask(file, lambda one: _alone(one.sniff(file, head))):
                    return
                problem = _why_unclaimed(file, head)
            elif stat.S_ISREG(info.st_mode) and (asked_for or file.name.lower().endswith(_TRACE_ENDINGS)):
                problem = _error(file, "is empty", "Record again: the writer was stopped or the disk was full")
            else:
                problem = None
        except OSError as error:
            problem = unreadable(file, error)
        except UnreadableInput as error:
            problem = unread(error)
        if problem is not None:
            self._report(replace(problem, severity="error") if asked_for else problem)
        elif asked_for:
            self._report(_unknown(file))
        else:
            self.found.skipped += 1

    def _ask(self, path: Path, ask: Callable[[Source], Found | None], names: Sequence[str] = ()) -> Found | None:
        """What a reader finds in `path`, None if none takes it. A failure is reported and the next reader tried.

        The reader of a plug-in cannot take those of the `names` in a directory where our readers find a recording.
        """
        for source in self.sources:
            problem, found = None, None
            try:
                found = ask(source)
                if found is not None and {item.source for item in found.inputs} - {source.name}:
                    raise ValueError("an input that it found has the name of another reader")
            except UnreadableInput as error:
                problem, found = unread(error), _NOTHING
            except OSError as error:
                problem, found = unreadable(path, error), _NOTHING
            except FAILURES as error:
                problem, found = internal_error(path, error, source.name), None
            if problem is not None:
                self._report(problem)
            if found is not None and (source in self._ours or not self._is_ours(path, {*names} - {*found.rest})):
                self.found.inputs.extend(found.inputs)
                return found
        return None

    def _stays(self, entry: os.DirEntry[str]) -> bool:
        """Whether an entry of a directory is no link that leads out of where the walk may go."""
        if self._within is None or not entry.is_symlink() or lies_within(entry.path, self._within):
            return True
        remedy = "Serve the directory that it leads to as well, or put a copy in its place"
        self._report(Issue("note", shown(entry.path), "is a link that leads elsewhere, so it is not followed", remedy))
        return False

    def _is_ours(self, directory: Path, names: Iterable[str]) -> bool:
        """Whether our readers find a recording in these entries of a directory."""
        walk = _Walk(self._ours, self._within)
        for name in names:
            if not name.startswith("."):
                walk.start(directory / name)
        return bool(walk.found.inputs)

    def _report(self, problem: Issue) -> None:
        """List a problem; from many of one kind only the first, so that they do not bury the others."""
        kind = replace(problem, file="", trace=None)
        self._alike[kind] += 1
        if self._alike[kind] <= _MAX_ALIKE:
            self.found.problems.append(problem)

    def _is_new(self, info: os.stat_result) -> bool:
        """Whether a file or directory is new, under any name."""
        identity = (info.st_dev, info.st_ino)
        if identity in self._seen:
            return False
        self._seen.add(identity)
        return True


def _alone(item: Input | Found | None) -> Found | None:
    return Found((item,)) if isinstance(item, Input) else item


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _why_unclaimed(file: Path, head: bytes | None) -> Issue | None:
    """Why a file that looks like a trace cannot be read, or None for a file that looks like something else."""
    name = file.name.lower()
    for ending, unpacker in _UNPACKERS.items():
        if name.endswith(ending):
            return _error(file, "is compressed in an unsupported format", f"Unpack it with {unpacker}, or use gzip")
    if head is not None and is_json(head):
        if _TIMELINE in head[:_LOOKED_AT]:
            return Issue("note", shown(file), "is a timeline that stepscope wrote", _SHOW)
        if b'"traceEvents"' in head:
            return _error(
                file, "has trace events, but not from a known profiler", "Pass the file that the profiler wrote"
            )
        if broken_at(head) is None:
            remedy = "Nothing to do if it is not a recording; otherwise pass the file that the profiler wrote"
            return Issue("note", shown(file), "is JSON, but not in a trace format that stepscope reads", remedy)
    if name.endswith((".json", ".json.gz")):
        problem = f"has a JSON file name, but {_what_instead(file, head)}"
        return _error(file, problem, "Copy it or record again if it should be a recording")
    return None


def _unknown(file: Path) -> Issue:
    """Why a file that nobody reads is none, for a user who asked for it."""
    is_timeline = False
    with suppress(OSError):
        if file.is_file():  # opening a pipe would wait for its writer
            with file.open("rb") as opened:
                is_timeline = _TIMELINE in opened.read(_LOOKED_AT)
    if is_timeline:
        return _error(file, "is a timeline that stepscope wrote", _SHOW)
    return _error(file, "is in no format that stepscope reads", _READ)


def _what_instead(file: Path, head: bytes | None) -> str:
    """What a file with a JSON name holds instead of JSON."""
    if head is not None and is_json(head):
        return f"is not valid JSON from byte {broken_at(head)} on"
    with file.open("rb") as stream:
        start = stream.read(_PEEK_BYTES)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or (b"\0" in start[:2] and start.strip(b"\0")):
        return "is UTF-16 text; only UTF-8 is read"
    if not start.strip(b"\0"):
        return "holds only zeros: writing was never completed"
    return "is binary" if b"\0" in start else "is not valid JSON"
