"""Damaged directories of every format in the making, and what the commands make of them.

Usage:
    python tests/mutated_directories.py [--first SEED] [--count N]

Each seed is one directory. Printed are the failures, each with its seed, and how many directories were asked about
with the most time and memory that one took.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import NoReturn

TESTS = Path(__file__).parent
if __name__ == "__main__":
    sys.path[:0] = [str(TESTS / "sources"), str(TESTS / "sources" / "classic")]

from test_side_damage_matrix import LAYOUTS  # noqa: E402

from asking import answers  # noqa: E402 - as a script, only now are all modules found
from every_format import FORMATS  # noqa: E402
from mutated_files import mutated  # noqa: E402
from stepscope import open_runs  # noqa: E402
from stepscope.cli import main  # noqa: E402
from stepscope.errors import StepscopeError  # noqa: E402

SHARED = TESTS.parents[1] / "shared" / "data"
LARGEST_BYTES, MOST_FILES = 260_000, 40
"""Recordings beside the repository up to this size are mutated as well."""
CPU_S, HANG_S = 20.0, 240
"""CPU time that all questions about one directory may take, and the time after which they hang."""
MEMORY_BYTES = 300 << 20
"""By how much a process may grow while it asks."""
COMMANDS = (
    *("info", "steps", "ops", "flops", "host", "memory", "functions", "input", "shapes", "analyze"),
    *("gaps", "sql"),
)
"""Commands of which one is asked of each directory, beside all answers as JSON."""

Files = dict[str, bytes]


@dataclass(frozen=True)
class Asked:
    """What became of a directory.

    Args:
        seed: Which one.
        failure: What went wrong, with a traceback; empty if all is well.
        cpu_s: CPU time that the answers took.
        memory_bytes: The most that the process held.
    """

    seed: int
    failure: str
    cpu_s: float
    memory_bytes: int


@cache
def bases() -> Mapping[str, Files]:
    """Sound directories by name, as names and contents of their files."""
    found: dict[str, Files] = {}
    for name, write in FORMATS.items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder))
            found[name] = _files(Path(folder))
    found |= {f"layout {name}": make() for name, make in LAYOUTS.items()}
    for path in sorted(SHARED.glob("*/*")) if SHARED.is_dir() else ():
        files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else []
        if 0 < len(files) <= MOST_FILES and sum(file.stat().st_size for file in files) <= LARGEST_BYTES:
            found[f"{path.parent.name}/{path.name}"] = _files(path)
    return found


def mutant(seed: int) -> tuple[str, Files]:
    """The base and the files of one damaged directory; the same seed gives the same."""
    source = random.Random(seed)
    name = source.choice(sorted(bases()))
    files = dict(bases()[name])
    for _ in range(source.choice((1, 1, 2, 3, 5))):
        if files and source.random() < 0.85:
            file = source.choice(sorted(files))
            files[file] = mutated(source, files[file])
        else:
            source.choice(MOVES)(source, files)
    return name, files


def _gone(source: random.Random, files: Files) -> None:
    if files:
        del files[source.choice(sorted(files))]


def _renamed(source: random.Random, files: Files) -> None:
    if files:
        file = source.choice(sorted(files))
        number = str(source.choice((1, 7, 2**31, 2**63, "x")))
        head, dot, tail = file.rpartition(".")
        last = head.rstrip("0123456789")
        files[f"{last}{number}{dot}{tail}"] = files[file] if source.random() < 0.5 else files.pop(file)


def _swapped(source: random.Random, files: Files) -> None:
    if files:
        one, other = source.choice(sorted(files)), source.choice(sorted(files))
        files[one], files[other] = files[other], files[one]


def _deeper(source: random.Random, files: Files) -> None:
    if files:
        file = source.choice(sorted(files))
        files[f"below/{file}"] = files.pop(file)


def _mixed(source: random.Random, files: Files) -> None:
    other = bases()[source.choice(sorted(bases()))]
    for file in source.sample(sorted(other), min(len(other), source.choice((1, 2, 50)))):
        files[file] = other[file]


MOVES: tuple[Callable[[random.Random, Files], None], ...] = (
    _gone,
    _gone,
    _renamed,
    _renamed,
    _swapped,
    _deeper,
    _mixed,
)


def ask(seed: int, *, questions: int = 3) -> Asked:
    """All answers about one damaged directory, as frames and as JSON, and what a command makes of it.

    Args:
        seed: Which directory.
        questions: How many of the three to ask; which ones comes from the seed.
    """
    name, files = mutant(seed)
    source = random.Random(seed)
    failure = ""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "job"
        directory.mkdir()
        write(directory, files)
        _forget_peak()
        held_bytes = _peak_bytes()
        before = time.process_time()
        with _alarm():
            every: list[Callable[[Path], object]] = [_every_answer, _json, lambda path: _command(path, source)]
            for question in (every[seed % 3 :] + every[: seed % 3])[:questions]:
                failure = failure or _failure(question, directory)
        cpu_s = time.process_time() - before
    memory_bytes = _peak_bytes()
    if not failure and cpu_s > CPU_S:
        failure = f"took {cpu_s:.1f} s of CPU time"
    if not failure and memory_bytes - held_bytes > MEMORY_BYTES:
        failure = f"held {memory_bytes - held_bytes >> 20} MiB more than before"
    return Asked(seed, failure and f"{name}: {failure}", cpu_s, memory_bytes)


def write(directory: Path, files: Files) -> None:
    """Write the files; one whose name another has as a folder is left out."""
    for name, content in files.items():
        with contextlib.suppress(OSError):
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)


def _json(directory: Path) -> None:
    _run("analyze", str(directory), "--json", "--no-store")


def _every_answer(directory: Path) -> None:
    for run in open_runs(directory, use_store=False):
        for unread in run.unread:
            assert unread.trace is None, unread.trace
        answers(run)


def _command(directory: Path, source: random.Random) -> None:
    command = source.choice(COMMANDS)
    more = ("SELECT * FROM issues",) if command == "sql" else ()
    _run(command, str(directory), *more, "--no-store")


def _run(*words: str) -> None:
    """A command; an error that is none of ours is raised, and so is what a reader did not foresee."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        main([*words, "--debug"])
    text = out.getvalue() + errors.getvalue()
    for doubt in ("internal error", "a stored table cannot be read"):
        if doubt in text:
            at = text.index(doubt)
            raise AssertionError(f"{' '.join(words[::2])}: {text[at : at + 500]}")


def _failure(question: Callable[[Path], object], directory: Path) -> str:
    try:
        question(directory)
    except StepscopeError as error:
        return str(error) if "internal error" in str(error) else ""
    except BaseException:
        return traceback.format_exc(limit=-6)
    return ""


def _files(folder: Path) -> Files:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    """Raise `TimeoutError` where the questions hang."""

    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise TimeoutError(f"no answer within {HANG_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _forget_peak() -> None:
    """Count the peak of memory anew; a system without that counts that of the whole process."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    options = parser.parse_args()
    failures, slowest, largest = 0, (0.0, -1), (0, -1)
    for number, seed in enumerate(range(options.first, options.first + options.count), 1):
        asked = ask(seed)
        slowest, largest = max(slowest, (asked.cpu_s, seed)), max(largest, (asked.memory_bytes, seed))
        if asked.failure:
            failures += 1
            print(f"seed {seed}: {asked.failure}\n", flush=True)
        if number % 100 == 0 or number == options.count:
            most = f"most CPU time {slowest[0]:.1f} s (seed {slowest[1]}), memory {largest[0] >> 20} MiB"
            print(f"{number} directories, {failures} failures; {most} (seed {largest[1]})", flush=True)
    return failures > 0


if __name__ == "__main__":
    os.environ.setdefault("POLARS_MAX_THREADS", "2")
    os.environ["STEPSCOPE_DEBUG"] = "1"
    sys.exit(_main())
