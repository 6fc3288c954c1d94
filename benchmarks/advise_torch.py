"""What the rules find in small PyTorch jobs, each recorded here with one planted fault, and in its healthy twin.

Each job trains a small model on the CPU for a few steps under our own profiler, in a process of its own (two of them
where ranks matter), several times, faults and twins in turn. A fault is found if the rule that is about it reports it
in most recordings; a twin is clean if most have no finding of high or medium severity. Faults that cost a CPU nothing
(values read back, small launches, copies of pageable memory) must have no finding. What the machine does beside the
jobs is told apart (`MACHINE`): it is true, but not of the job.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from torch_faults import CASES, Case, train_rank

MACHINE = ("processor-wait", "cpu-busy")
"""Rules about other work on the machine."""


@dataclass(frozen=True)
class Found:
    """The findings of one recording: rule, message and severity."""

    findings: tuple[tuple[str, str, str], ...]

    def has(self, case: Case) -> bool:
        """Whether the fault of a case is among them."""
        return any(rule == case.rule and message.startswith(case.message) for rule, message, _ in self.findings)

    @property
    def grave(self) -> list[str]:
        """Rules of high and medium severity."""
        return sorted({rule for rule, _, severity in self.findings if severity != "low"})


def recorded(case: Case, fault: bool, out: Path) -> Found:
    """Record a job in processes of its own, and what is found in it."""
    command = [sys.executable, __file__, "--case", str(CASES.index(case)), "--out", str(out)]
    command += ["--fault"] if fault else []
    with tempfile.TemporaryDirectory() as meeting:
        ranks = [
            subprocess.Popen([*command, "--rank", str(rank), "--meeting", f"{meeting}/all"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
            for rank in range(case.make(fault).ranks)
        ]  # fmt: skip
        for rank in ranks:
            _, words = rank.communicate()
            if rank.returncode:
                raise RuntimeError(f"{case.name}: {words}")
    from stepscope import open_run  # noqa: PLC0415  a process that records needs neither
    from stepscope.advice import advise  # noqa: PLC0415

    found = advise(open_run(str(out)), strict=True)
    return Found(tuple((one.rule, one.message, one.severity) for one in found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", type=int, help="record only this job, and nothing else")
    parser.add_argument("--fault", action="store_true", help="with --case: plant the fault")
    parser.add_argument("--rank", type=int, default=0, help="with --case: the rank of this process")
    parser.add_argument("--meeting", default="", help="with --case: the file by which ranks meet")
    parser.add_argument("--out", help="where to write recordings; default: a temporary directory")
    parser.add_argument("--only", default="", help="only cases whose name has this text")
    parser.add_argument("--rounds", type=int, default=3, help="recordings of each job")
    options = parser.parse_args()
    if options.case is not None:
        train_rank(CASES[options.case].make(options.fault), options.out, options.rank, options.meeting)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        cases = [case for case in CASES if options.only in case.name]
        return _table(cases, Path(options.out or folder), options.rounds)


@dataclass
class Judged:
    """What was found in all recordings of a case, of the fault and of its twin."""

    case: Case
    faults: list[Found] = field(default_factory=list)
    twins: list[Found] = field(default_factory=list)

    @property
    def hits(self) -> int:
        """Recordings in which the fault is found; of faults that cost nothing, in which nothing grave is."""
        if self.case.rule is None:
            return sum(not _own(one.grave) for one in self.faults)
        return sum(one.has(self.case) for one in self.faults)

    @property
    def clean(self) -> int:
        """Twins without grave findings about the job."""
        return sum(not _own(one.grave) for one in self.twins)

    def false_alarms(self, rule: str) -> int:
        """Recordings of twins, and of faults that cost nothing, in which a rule has a grave finding."""
        healthy = self.twins + (self.faults if self.case.rule is None else [])
        return sum(rule in one.grave for one in healthy)


def _own(rules: list[str]) -> list[str]:
    """Rules about the job, not about the machine."""
    return [rule for rule in rules if rule not in MACHINE]


def _table(cases: list[Case], folder: Path, rounds: int) -> int:
    print(f"load average at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(f"{'fault':<34} {'rule that must find it':<24} {'found':<8} {'twins clean':<12} grave findings of twins")
    judged = [Judged(case) for case in cases]
    for one in judged:
        number = CASES.index(one.case)
        for turn in range(rounds):
            one.faults.append(recorded(one.case, True, folder / f"{number}-{turn}-fault"))
            one.twins.append(recorded(one.case, False, folder / f"{number}-{turn}-twin"))
        words = ", ".join(sorted({rule for twin in one.twins for rule in _own(twin.grave)})) or "-"
        expected = one.case.rule or "none: free on a CPU"
        counts = f"{one.hits} of {rounds}", f"{one.clean} of {rounds}"
        print(f"{one.case.name:<34} {expected:<24} {counts[0]:<8} {counts[1]:<12} {words}", flush=True)
    _by_rule(judged, rounds)
    most = rounds / 2
    return 0 if all(one.hits > most and one.clean > most for one in judged) else 1


def _by_rule(judged: list[Judged], rounds: int) -> None:
    """Recall and precision of each rule over all recordings."""
    every = [found for one in judged for found in one.faults + one.twins]
    rules = sorted({rule for found in every for rule in found.grave} | {one.case.rule or "" for one in judged} - {""})
    print(f"\n{'rule':<24} {'found':<12} false alarms in healthy recordings")
    healthy = rounds * sum(2 if one.case.rule is None else 1 for one in judged)
    for rule in rules:
        own = [one for one in judged if one.case.rule == rule]
        hits = f"{sum(one.hits for one in own)} of {rounds * len(own)}" if own else "-"
        alarms = sum(one.false_alarms(rule) for one in judged)
        of_machine = "   (about the machine)" if rule in MACHINE else ""
        print(f"{rule:<24} {hits:<12} {alarms} of {healthy}{of_machine}")


if __name__ == "__main__":
    sys.exit(main())
