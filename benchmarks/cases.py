"""The commands that are compared on one input."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

JSON_LOAD = "import json, sys; json.load(open(sys.argv[1], 'rb'))"
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


@dataclass(frozen=True)
class Case:
    """One command to measure.

    Args:
        name: What the table calls it.
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
    stepscope: Path | None

    def command(self) -> str | None:
        """The `stepscope` command: the given one, the one beside this Python, or the one on the path."""
        beside = Path(sys.executable).with_name("stepscope")
        if self.stepscope or beside.exists():
            return str(self.stepscope or beside)
        return shutil.which("stepscope")

    def missing(self, *, ascend: bool) -> list[str]:
        """One line for each program whose rows are left out."""
        lines = []
        if not self.command():
            lines.append("Left out: stepscope, no such command. Run: pip install -e .")
        if not self.hta_python:
            lines.append("Left out: HolisticTraceAnalysis. Give --hta-python of an environment that has it.")
        if ascend and not self.msprof:
            lines.append("Left out: msprof-analyze. Give --msprof-bin.")
        return lines


def trace_cases(trace: Path, peers: Peers, scratch: Path) -> list[Case]:
    """All cases on one trace, alone in its directory."""
    cases = _stepscope_cases(trace, peers, scratch)
    cases.append(Case("json.load", (sys.executable, "-c", JSON_LOAD, str(trace))))
    if peers.hta_python:
        command = (str(peers.hta_python), "-c", HTA_LOAD, str(trace.parent))
        cases.append(Case("HTA load", command))
    return cases


def ascend_cases(directory: Path, peers: Peers, scratch: Path) -> list[Case]:
    """All cases on one directory of Ascend profiles."""
    cases = _stepscope_cases(directory, peers, scratch)
    if peers.msprof:
        out = scratch / "msprof"

        def empty_out() -> None:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()

        for name, options in (("cluster -m all", ("cluster", "-m", "all")), ("advisor all", ("advisor", "all"))):
            command = (str(peers.msprof), *options, "-d", str(directory), "-o", str(out), "--force")
            cases.append(Case(f"msprof-analyze {name}", command, prepare=empty_out))
    return cases


def _stepscope_cases(path: Path, peers: Peers, scratch: Path) -> list[Case]:
    command = peers.command()
    if not command:
        return []
    empty = scratch / "empty-store"
    filled = scratch / f"store-of-{path.name}"

    def fill() -> None:
        """Analyse once, so that the store holds the input."""
        if not filled.exists():
            subprocess.run(
                (command, "analyze", str(path), "--quiet", "--json", "-"),
                env={**os.environ, **_cache(filled)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,  # the measured run shows the failure
            )

    python = str(Path(command).with_name("python"))
    return [
        Case(COLD, (command, "analyze", "--no-store", str(path), "--json", "-"), env=_cache(empty)),
        Case(LOAD, (python, "-c", STEPSCOPE_LOAD, str(path)), env=_cache(empty)),
        Case(STORED, (command, "analyze", str(path), "--json", "-"), env=_cache(filled), prepare=fill),
    ]


def _cache(directory: Path) -> dict[str, str]:
    return {"STEPSCOPE_CACHE": str(directory)}
