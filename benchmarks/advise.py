"""Whether advice names what is wrong: Ascend jobs with one planted fault each, with several, and with none.

    benchmarks/advise.py --gen SCRIPT [--seeds 8] [--formats text,db] [--only FAULT,...] [--together 4]
        [--peer COMMAND] [--jobs 2] [--json FILE] [--show]

SCRIPT makes directories of Ascend profiles with known faults (`--faults`, `ground_truth.json`). Each job is judged as a
cluster and, where one rank shows the fault, as this rank alone. A fault is found if a finding of one of its rules names
a rank that has it, or all ranks; it is placed if one names exactly the ranks that have it. A finding of such a rule in
a job without its fault is a false one, unless it is a remark of low severity; these are counted apart. With `--peer`,
the command of Ascend's own advisor judges the same directories, once for each fault.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.advice import Finding

HERE = Path(__file__).parent

RULES: dict[str, tuple[str, ...]] = {
    "slow_compute": ("slow-rank:computing",),
    "slow_dispatch": ("slow-rank:dispatch",),
    "slow_link": ("slow-link",),
    "freq": ("low-clock",),
    "aicpu": ("ai-cpu",),
    "dynamic": ("dynamic-shape",),
    "blockdim": ("block-dim",),
    "nobound": ("operator-bound",),
    "sync": ("launch-wait",),
    "gc": ("garbage-collection",),
    "cgc": ("host-stall",),
    "compile": ("compile-time",),
    "syncbn": ("sync-batch-norm",),
    "affinity": ("replaceable-operators",),
    "mem": ("memory-calls",),
    "dataloader": ("data-loader", "slow-rank:data_loading", "idle-time:data_loading"),
    "smallpkt": ("small-packets",),
    "contention": ("bandwidth-contention",),
    "retrans": ("retransmission",),
    "env": ("environment",),
    "align": ("byte-alignment",),
}
"""Rules that name a fault by its cause; of rules about several kinds of time, with the kind."""

CLUSTER_ONLY = ("slow_compute", "slow_dispatch", "slow_link")
"""Faults of which a rank alone shows nothing, as it has nobody to be compared with."""

NOT_WRITTEN = {("sync", "db")}
"""Faults that the script does not write into some format: there are no launches with a wait after each in databases."""

NODES = {"retrans": 16}
"""Ranks of jobs whose fault needs more than the usual 8: between nodes."""

PEER = {
    "slow rank": ("slow_compute", "slow_dispatch"),
    "slow link": ("slow_link",),
    "frequency": ("freq",),
    "aicpu": ("aicpu",),
    "dynamic shape": ("dynamic",),
    "block dim": ("blockdim",),
    "no bound": ("nobound",),
    "Synchronize Stream": ("sync",),
    "GC Analysis": ("gc",),
    "ConjecturedGc": ("cgc",),
    "Conjectured GC": ("cgc",),
    "Operator Dispatch": ("compile",),
    "SyncBatchNorm": ("syncbn",),
    "Affinity API": ("affinity",),
    "Memory Operator": ("mem",),
    "Slow Dataloader": ("dataloader",),
    "Packet": ("smallpkt",),
    "Contention": ("contention",),
    "Retransmission": ("retrans",),
    "Environment Variable": ("env",),
    "Byte Alignment": ("align",),
}
"""Words in the headings of the peer's problems, and the faults that they name."""

PEER_CLEAN = "there is no slow rank issues"
"""What the peer says of ranks where it has found nothing; of links it prints figures in any case."""

CLUSTER, ONE_RANK = "cluster", "one rank"


@dataclass(frozen=True)
class Job:
    """A directory with faults, and where they are."""

    faults: tuple[str, ...]
    seed: int
    form: str
    path: Path
    truth: dict[str, Any]

    def ranks(self, fault: str) -> set[int] | None:
        """The ranks that have a fault; None if all have."""
        told = self.truth[fault]
        rank: Any = told.get("rank", told.get("ranks", "all")) if isinstance(told, dict) else "all"
        return None if rank == "all" else {rank} if isinstance(rank, int) else {int(one) for one in rank}


@dataclass
class Score:
    """What was found in one job; of the faults of some ranks, `placed` are those of which a finding
    names exactly these ranks, `scattered` the others that were found."""

    view: str
    faults: tuple[str, ...]
    form: str
    seed: int
    found: list[str] = field(default_factory=list)
    placed: list[str] = field(default_factory=list)
    scattered: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    severe: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gen", type=Path, required=True, help="script that makes Ascend directories")
    parser.add_argument("--seeds", type=int, default=8, help="jobs of each kind")
    parser.add_argument("--formats", default="text,db", help="formats of the directories")
    parser.add_argument("--only", default="", help="only these faults, and `none`")
    parser.add_argument("--together", type=int, default=4, help="jobs with several faults, in each format")
    parser.add_argument("--peer", help="command of the peer, e.g. venv/bin/msprof-analyze")
    parser.add_argument("--jobs", type=int, default=1, help="jobs judged at a time")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--show", action="store_true", help="print each job that is not judged right")
    chosen = parser.parse_args()
    sys.path.insert(0, str(HERE.parent / "src"))
    only = [name for name in chosen.only.split(",") if name]
    scores: list[Score] = []
    peers: list[Score] = []
    cases = _cases(chosen.seeds, chosen.formats.split(","), only, chosen.together)
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for ours, theirs in pool.map(partial(_tried, chosen.gen, chosen.peer), cases):
            scores += ours
            peers += theirs
            if chosen.show:
                for score in ours:
                    if score.missed or score.false:
                        print(vars(score), flush=True)
    print(table(scores, peers))
    if chosen.json:
        chosen.json.write_text(json.dumps([vars(each) for each in (*scores, *peers)], indent=1))
    return 0


def _tried(gen: Path, peer: str | None, case: tuple[tuple[str, ...], int, str]) -> tuple[list[Score], list[Score]]:
    """What was found in a job of these faults, seed and format, and what the peer finds in one job of each kind."""
    faults, seed, form = case
    sys.path.insert(0, str(HERE.parent / "src"))
    with tempfile.TemporaryDirectory() as folder:
        job = _made(gen, faults, seed, form, Path(folder))
        ours = _judged(job, Path(folder) / "cache")
        theirs = list(_of_peer(job, peer, Path(folder) / "peer")) if peer and seed == 1 and form == "text" else []
        return ours, theirs


def _cases(
    seeds: int, forms: Sequence[str], only: Sequence[str], together: int
) -> Iterator[tuple[tuple[str, ...], int, str]]:
    """Faults, seed and format of each job."""
    for form in forms:
        for seed in range(1, seeds + 1):
            for fault in [*RULES, ""]:
                if (not only or (fault or "none") in only) and (fault, form) not in NOT_WRITTEN:
                    yield ((fault,) if fault else ()), seed, form
        if not only:
            for seed in range(1, together + 1):
                yield tuple(sorted(random.Random(seed).sample(sorted(RULES), 4))), seed, form


def _made(gen: Path, faults: Sequence[str], seed: int, form: str, folder: Path) -> Job:
    out = folder / "job"
    ranks = max((NODES.get(fault, 8) for fault in faults), default=8)
    words = ["--out", out, "--ranks", ranks, "--steps", 4, "--ops-per-step", 200, "--format", form, "--seed", seed]
    wanted = ["--faults", ",".join(faults) or "none", "--with-stack"]
    subprocess.run([sys.executable, gen, *map(str, words), *wanted], check=True, capture_output=True)
    return Job(tuple(faults), seed, form, out, json.loads((out / "ground_truth.json").read_text())["faults"])


def _judged(job: Job, cache: Path) -> list[Score]:
    """The whole job, and a rank with its faults alone if these can be seen there."""
    found = [_score(job, CLUSTER, _advice(job.path, cache), None)]
    if (alone := _alone(job)) is not None:
        rank, path = alone
        found.append(_score(job, ONE_RANK, _advice(path, cache), rank))
    return found


def _alone(job: Job) -> tuple[int, Path] | None:
    """A rank with the job's only fault, and its directory; rank 0 of a healthy job. None if it would show nothing."""
    if len(job.faults) > 1 or not {*job.faults}.isdisjoint(CLUSTER_ONLY):
        return None
    rank = min((job.ranks(job.faults[0]) if job.faults else None) or {0})
    (path,) = (path for path in job.path.iterdir() if _rank_of(path) == rank)
    return rank, path


def _rank_of(path: Path) -> int | None:
    """The rank of a profile, by the name of its file of facts."""
    facts = next(path.glob("profiler_info_*.json"), None) if path.is_dir() else None
    return None if facts is None else int(facts.stem.rpartition("_")[2])


def _advice(path: Path, cache: Path) -> list[Finding]:
    import os  # noqa: PLC0415

    os.environ["STEPSCOPE_CACHE"] = str(cache)
    from stepscope import open_run  # noqa: PLC0415  from the tree of this file
    from stepscope.advice import advise  # noqa: PLC0415

    return advise(open_run(path))


def _score(job: Job, view: str, findings: Iterable[Finding], rank: int | None) -> Score:
    score = Score(view, job.faults, job.form, job.seed)
    given = list(findings)
    for fault in job.faults:
        if (fault, job.form) in NOT_WRITTEN:
            continue
        ranks = job.ranks(fault) if rank is None else None
        named = [
            finding
            for finding in given
            if _names(finding, RULES[fault]) and (ranks is None or not finding.ranks or ranks & {*finding.ranks})
        ]
        (score.found if named else score.missed).append(fault)
        if ranks is not None and any({*finding.ranks} == ranks for finding in named):
            score.placed.append(fault)
        elif ranks is not None and named:
            score.scattered.append(fault)
    right = {rule for fault in job.faults for rule in RULES[fault]}
    about = {rule for rules in RULES.values() for rule in rules if ":" not in rule}
    wrong = [finding for finding in given if finding.rule in about - right]
    score.false = sorted({finding.rule for finding in wrong if _is_told(finding)})
    score.remarks = sorted({finding.rule for finding in wrong if not _is_told(finding)})
    score.severe = sorted({finding.rule for finding in given if finding.severity != "low"})
    return score


def _names(finding: Finding, rules: Iterable[str]) -> bool:
    """Whether a finding is one of some rules, and about their kind of time."""
    kinds = {finding.evidence.get(name) for name in ("kind", "cause")}
    parts = (rule.partition(":") for rule in rules)
    return any(finding.rule == rule and (not kind or kind in kinds) for rule, _, kind in parts)


def _is_told(finding: Finding) -> bool:
    """Whether a finding blames its cause and is no remark of low severity."""
    return finding.severity != "low"


def _of_peer(job: Job, command: str, out: Path) -> Iterator[Score]:
    """What the peer finds in the same directories."""
    alone = _alone(job)
    views = [(CLUSTER, job.path), *([(ONE_RANK, alone[1])] if alone else [])]
    for view, path in views:
        named = _named_by_peer([command, "advisor", "all", "-d", str(path), "-o", str(out / view), "-l", "en"], out)
        score = Score(f"peer, {view}", job.faults, job.form, job.seed)
        score.found = [fault for fault in job.faults if fault in named]
        score.missed = [fault for fault in job.faults if fault not in named]
        score.false = sorted(named - {*job.faults})
        yield score


def _named_by_peer(command: Sequence[str], out: Path) -> set[str]:
    out.mkdir(exist_ok=True)
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=out)
    problems: list[list[str]] = []
    for line in done.stdout.splitlines():
        cells = [cell.strip().lower() for cell in line.split("|")]
        if len(cells) > 3 and cells[1]:
            problems.append(cells[2:4])
        elif len(cells) > 3 and problems:
            problems[-1][1] += " " + cells[3]
    if not problems:
        raise SystemExit(f"the peer found nothing in {command[4]}: {done.stderr[-500:] or done.stdout[-500:]}")
    return {
        fault
        for heading, text in problems
        for words, faults in PEER.items()
        if words.lower() in heading and not _is_clean(text)
        for fault in faults
    }


def _is_clean(text: str) -> bool:
    """Whether the peer says under a heading that it found nothing."""
    differences = [float(figure) for figure in re.findall(r"the difference is ([0-9.]+)gb/s", text)]
    return PEER_CLEAN in text or (bool(differences) and max(differences) == 0)


def table(scores: Sequence[Score], peers: Sequence[Score]) -> str:
    """A line for each fault: how often it was found, and how often its rules were wrong; then healthy jobs."""
    views = [CLUSTER, ONE_RANK, *([f"peer, {CLUSTER}", f"peer, {ONE_RANK}"] if peers else [])]
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for score in (*scores, *peers):
        for fault in score.found:
            found[score.view, fault]["found"] += 1
        for fault in (*score.found, *score.missed):
            found[score.view, fault]["there"] += 1
        for fault, rules in RULES.items():
            is_wrong = fault in score.false if score.view.startswith("peer") else not {*rules}.isdisjoint(score.false)
            found[score.view, fault]["false"] += int(is_wrong)
    lines = [f"{'fault':14}{'rules':24}" + "".join(f"{view + ': found':>24}{'false':>7}" for view in views)]
    for fault, rules in RULES.items():
        cells = [found[view, fault] for view in views]
        if any(cell["there"] for cell in cells):
            shown = (f"{cell['found']}/{cell['there']}" if cell["there"] else "-" for cell in cells)
            told = "".join(f"{text:>24}{cell['false']:>7}" for text, cell in zip(shown, cells, strict=True))
            lines.append(f"{fault:14}{', '.join(rules):24}{told}")
    every = [score for score in scores if score.faults]
    known = sum(len(score.found) for score in every)
    there = known + sum(len(score.missed) for score in every)
    wrong = sum(len(score.false) for score in scores)
    lines.append(f"recall {known / max(there, 1):.3f}, precision {known / max(known + wrong, 1):.3f}")
    placed, scattered = (sum(len(getattr(score, name)) for score in every) for name in ("placed", "scattered"))
    lines.append(f"faults of some ranks, found with exactly these ranks: {placed} of {placed + scattered}")
    healthy = [score for score in scores if not score.faults]
    severe = Counter(rule for score in healthy for rule in score.severe)
    remarks = Counter(rule for score in healthy for rule in score.remarks)
    lines.append(f"healthy jobs: {len(healthy)}, with remarks of: {dict(remarks) or 'none'}")
    lines.append(f"healthy jobs: {len(healthy)}, with high or medium findings of: {dict(severe) or 'none'}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
