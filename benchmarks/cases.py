"""The commands that are compared on one input."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLAIN_READ = """
import sys
with open(sys.argv[1], "rb", buffering=0) as file:
    while file.read(1 << 20):
        pass
"""
JSON_LOAD = "import json, sys; json.load(open(sys.argv[1], 'rb'))"
RAW_DECODE = "import msgspec, sys; msgspec.json.decode(open(sys.argv[1], 'rb').read())"
HTA_LOAD = "import sys; from hta.trace_analysis import TraceAnalysis; TraceAnalysis(trace_dir=sys.argv[1])"
STEPSCOPE_LOAD = """
import sys
import stepscope
from stepscope.tables import TABLES
run = stepscope.open_run([sys.argv[1]], use_store=False)
for name in TABLES:
    if run.has(name):
        run.table(name).collect()
"""

COLD = "stepscope analyze, cold"
LOAD = "stepscope load only"
STORED = "stepscope analyze, from store"
ROWS = "  read into the store"
OPENED = "  open what is there"
PARTS = {
    "imported": "  import what reads",
    "decoded": "  only decode",
    "rows": "  decode, make rows, drop them",
    "answered": "  open, answer the page",
    "advised": "  open, answer, advise",
}
"""What each command of `stages.py` is called."""


@dataclass(frozen=True)
class Case:
    """One command to measure.

    Args:
        name: What the table calls it; it begins with blanks if it is a part of another case.
        command: Program and arguments.
        env: Additional variables.
        prepare: Called before each run, not measured.
    """

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Peers:
    """Where the compared programs are; None where one is not given."""

    hta_python: Path | None
    msprof: Path | None
    tensorboard: Path | None
    stepscope: Path | None

    def command(self) -> str | None:
        """The `stepscope` command: the given one, the one beside this Python, or the one on the path."""
        beside = Path(sys.executable).with_name("stepscope")
        if self.stepscope or beside.exists():
            return str(self.stepscope or beside)
        return shutil.which("stepscope")

    def missing(self, *, ascend: bool, traces: bool = True) -> list[str]:
        """One line for each program whose rows are left out."""
        lines = []
        if not self.command():
            lines.append("Left out: stepscope, no such command. Run: pip install -e .")
        if traces and not self.hta_python:
            lines.append("Left out: HolisticTraceAnalysis. Give --hta-python of an environment that has it.")
        if traces and not self.tensorboard:
            lines.append("Left out: the profiler plugin of TensorBoard. Give --tensorboard-bin.")
        if ascend and not self.msprof:
            lines.append("Left out: msprof-analyze. Give --msprof-bin.")
        return lines


def trace_cases(trace: Path, peers: Peers, scratch: Path) -> list[Case]:
    """All cases on one trace, alone in its directory."""
    cases = stepscope_cases(trace, peers, scratch)
    cases += stage_cases(trace, peers, scratch, trace=True)
    bounds = {"plain read of the file": PLAIN_READ, "json.load": JSON_LOAD, "msgspec, raw decode": RAW_DECODE}
    cases += [Case(name, (sys.executable, "-c", code, str(trace))) for name, code in bounds.items()]
    if peers.hta_python:
        command = (str(peers.hta_python), "-c", HTA_LOAD, str(trace.parent))
        cases.append(Case("HTA load", command))
    if peers.tensorboard:
        served = (sys.executable, str(HERE / "clients" / "tensorboard.py"), str(peers.tensorboard), str(trace.parent))
        cases.append(Case("TensorBoard plugin, load", served))
    return cases


def ascend_cases(directory: Path, peers: Peers, scratch: Path) -> list[Case]:
    """All cases on one directory of Ascend profiles."""
    cases = stepscope_cases(directory, peers, scratch) + stage_cases(directory, peers, scratch)
    return cases + msprof_cases(directory, peers, scratch)


def msprof_cases(directory: Path, peers: Peers, scratch: Path) -> list[Case]:
    """What msprof-analyze does with the same directory."""
    out = scratch / "msprof"

    def empty_out() -> None:
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()

    cases = []
    for name, options in (("cluster -m all", ("cluster", "-m", "all")), ("advisor all", ("advisor", "all"))):
        if peers.msprof:
            command = (str(peers.msprof), *options, "-d", str(directory), "-o", str(out), "--force")
            cases.append(Case(f"msprof-analyze {name}", command, prepare=empty_out))
    return cases


def stepscope_cases(path: Path, peers: Peers, scratch: Path, *, load: bool = True) -> list[Case]:
    """What a user does: the first and the second `analyze`, and (`load`) collecting every table in Python."""
    command = peers.command()
    if not command:
        return []
    stores = _Stores(path, command, scratch)
    analyze = (command, "analyze", str(path), "--quiet", "--json")
    loads = Case(LOAD, (stores.python, "-c", STEPSCOPE_LOAD, str(path)), env=stores.env(stores.empty))
    return [
        Case(COLD, analyze, env=stores.env(stores.empty), prepare=stores.remove),
        *([loads] if load else []),
        Case(STORED, analyze, env=stores.env(stores.filled), prepare=stores.fill),
    ]


def report_cases(path: Path, peers: Peers, scratch: Path) -> list[Case]:
    """The first report of an input, the one when it is read but nothing was asked, and the second."""
    command = peers.command()
    if not command:
        return []
    stores = _Stores(path, command, scratch)
    words = (command, "report", str(path), "--quiet", "--force", "-o", str(scratch / "report.html"))
    return [
        Case("stepscope report, cold", words, stores.env(stores.empty), stores.remove),
        Case("stepscope report, once read", words, stores.env(stores.unasked), stores.copy_rows),
        Case("stepscope report, again", words, stores.env(stores.unasked)),
    ]


def written_cases(path: Path, peers: Peers, scratch: Path) -> tuple[list[Case], dict[str, Path]]:
    """Reading an input, then what writes all of it for other tools: timelines and exports.

    Returns:
        The cases, and what each of them writes.
    """
    command = peers.command()
    if not command:
        return [], {}
    stores = _Stores(path, command, scratch)
    reading = (stores.python, str(HERE / "stages.py"), "opened", str(path))
    cases, outputs = [Case(ROWS, reading, stores.env(stores.empty), stores.remove)], {}
    out = scratch / "written"

    def add(name: str, words: tuple[str, ...], output: Path, *, cold: bool = False) -> None:
        def prepare() -> None:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            (stores.remove if cold else stores.copy_rows)()

        store = stores.empty if cold else stores.unasked
        written = (command, words[0], str(path), *words[1:], "-o", str(output), "--quiet")
        cases.append(Case(name, written, stores.env(store), prepare))
        outputs[name] = output

    for form, name in (("perfetto", "timeline.pftrace"), ("json", "timeline.json"), ("json", "timeline.json.gz")):
        add(f"timeline, {name.partition('.')[2]}", ("timeline", "--format", form), out / name)
    add("timeline, pftrace, cold", ("timeline", "--format", "perfetto"), out / "timeline.pftrace", cold=True)
    add("timeline, json, cold", ("timeline", "--format", "json"), out / "timeline.json", cold=True)
    plain = ("timeline", "--format", "perfetto", "--no-explain")
    add("timeline, pftrace, --no-explain", plain, out / "timeline.pftrace")
    for form in ("parquet", "otlp"):
        add(f"export, {form}", ("export", "--format", form), out / form)
    return cases, outputs


def stage_cases(path: Path, peers: Peers, scratch: Path, *, trace: bool = False) -> list[Case]:
    """Parts of an analysis, each with all that precedes it, so that differences of neighbours are its stages."""
    command = peers.command()
    if not command:
        return []
    stores = _Stores(path, command, scratch)

    def case(name: str, stage: str, store: Path, prepare: Callable[[], None]) -> Case:
        return Case(name, (stores.python, str(HERE / "stages.py"), stage, str(path)), stores.env(store), prepare)

    reading = ["imported", *(["decoded"] if trace else []), "rows"]
    return [
        *(case(PARTS[stage], stage, stores.empty, stores.remove) for stage in reading),
        case(ROWS, "opened", stores.empty, stores.remove),
        case(OPENED, "opened", stores.unasked, stores.copy_rows),
        *(case(PARTS[stage], stage, stores.unasked, stores.copy_rows) for stage in ("answered", "advised")),
    ]


@dataclass(frozen=True)
class _Stores:
    """Stores for one input: an empty one, one that `analyze` has used, and one with rows of which nothing was asked."""

    path: Path
    command: str
    scratch: Path

    @property
    def python(self) -> str:
        beside = Path(self.command).with_name("python")
        return str(beside) if beside.exists() else sys.executable

    @property
    def empty(self) -> Path:
        return self.scratch / "store-empty"

    @property
    def filled(self) -> Path:
        return self.scratch / f"store-of-{self.path.name}"

    @property
    def unasked(self) -> Path:
        return self.scratch / "store-unasked"

    @staticmethod
    def env(directory: Path) -> dict[str, str]:
        return {"STEPSCOPE_CACHE": str(directory)}

    def remove(self) -> None:
        """Empty the store that is to be empty."""
        shutil.rmtree(self.empty, ignore_errors=True)

    def fill(self) -> None:
        """Analyse once, so that the store holds the input."""
        if not self.filled.exists():
            self._run((self.command, "analyze", str(self.path), "--quiet", "--json"), self.filled)

    def copy_rows(self) -> None:
        """Make a store with the rows alone: answers that were kept beside them would be found instead of computed."""
        rows = self.scratch / f"store-of-rows-{self.path.name}"
        if not rows.exists():
            self._run((self.python, str(HERE / "stages.py"), "opened", str(self.path)), rows)
        shutil.rmtree(self.unasked, ignore_errors=True)
        if rows.exists():  # else the measured run shows the failure
            shutil.copytree(rows, self.unasked, copy_function=os.link)

    def _run(self, command: tuple[str, ...], store: Path) -> None:
        quiet = subprocess.DEVNULL
        subprocess.run(command, env={**os.environ, **self.env(store)}, stdout=quiet, stderr=quiet, check=False)
