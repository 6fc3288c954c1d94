"""Measure the web server: pages beside MindInsight on the same directories, memory with many runs, and load.

    python benchmarks/web.py --gen GENERATOR.py --mindinsight VENV/bin --out out/web.json

GENERATOR makes a job in the format of MindSpore's Profiler. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rounds import machine
from web_inputs import cluster, long_timeline, many_operators, many_runs, small_job
from web_load import load
from web_servers import Answer, Served, copied, mindinsight, stepscope, wait_until_ready

V1 = "/v1/mindinsight"
OPERATORS, CLUSTER, TIMELINE = "operators", "cluster", "timeline"
"""Names of the runs."""

Ask = Callable[[Served, int], Answer]
"""Sends a request to a server; the number differs each time, so that no answer is known before."""


@dataclass(frozen=True)
class Case:
    """A question that both servers answer.

    Args:
        name: What it is.
        ours, theirs: Ask it.
        times: How often it is asked.
    """

    name: str
    ours: Ask
    theirs: Ask
    times: int = 5


@dataclass(frozen=True)
class Measured:
    """Seconds that a question took: the first time, and in the median after that; None if it was not answered."""

    case: str
    server: str
    first_s: float | None
    median_s: float | None
    size_bytes: int
    problem: str = ""


def main() -> None:
    """Make the directories, serve them, ask, and print."""
    options = _options()
    print(f"{machine()}\n")
    peer = options.mindinsight
    if peer is not None and not (peer / "mindinsight").exists():
        print(f"MindInsight is left out: there is no {peer / 'mindinsight'}. Install it as README.md says.")
        peer = None
    elif peer is None:
        print("MindInsight is left out: --mindinsight names no environment with it.")
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-", dir=options.scratch) as name:
        scratch = Path(name)
        small = small_job(options.gen, scratch)
        runs = {
            OPERATORS: many_operators(small, scratch / "runs" / OPERATORS, options.kernels),
            CLUSTER: cluster(small, scratch / "runs" / CLUSTER, options.ranks),
            TIMELINE: long_timeline(small, scratch / "runs" / TIMELINE, options.events),
        }
        found = {
            "cases": [asdict(each) for each in _pages(runs, peer, scratch, options)],
            "memory": _memory(small, peer, scratch, options),
        }
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"machine": machine(), **found}, indent=1) + "\n")


def _pages(runs: Mapping[str, Path], peer: Path | None, scratch: Path, options: argparse.Namespace) -> list[Measured]:
    """Ask both servers the same questions in turn, and print a line for each."""
    found: list[Measured] = []
    with ExitStack() as stack:
        cache = scratch / "cache"
        with stepscope(scratch / "runs", cache) as first:
            print(f"stepscope reads and analyses {len(runs)} runs in {wait_until_ready(first, len(runs)):.0f} s")
        ours = stack.enter_context(stepscope(scratch / "runs", cache))
        servers = {"stepscope": ours}
        if peer is not None:
            served = copied(runs, scratch / "summary")
            servers["MindInsight"] = stack.enter_context(mindinsight(peer, served, scratch / "workspace"))
        print("first page after start: " + ", ".join(f"{n} {one.first_s:.2f} s" for n, one in servers.items()))
        wait_until_ready(ours, len(runs))
        ids = {run["name"]: run["id"] for run in ours.ask("/api/v1/runs", {"top": 100}).json()["runs"]}
        print(f"\n{'':46} {'stepscope: first, then':>26} {'MindInsight: first, then':>26} {'ratio':>14}")
        for case in _cases(ids, options):
            pair = [_measured(case, name, server) for name, server in servers.items()]
            found += pair
            print(_line(pair), flush=True)
        for name, server in servers.items():
            print(f"memory of {name} after that: {server.memory()}")
    return found


def _measured(case: Case, name: str, server: Served) -> Measured:
    ask = case.ours if name == "stepscope" else case.theirs
    answers = [ask(server, number) for number in range(case.times)]
    wrong = next((one for one in answers if one.status != 200), None)
    if wrong is not None:
        return Measured(case.name, name, None, None, 0, f"{wrong.status} {wrong.body[:200].decode(errors='replace')}")
    times = [one.seconds for one in answers]
    return Measured(case.name, name, times[0], statistics.median(times[1:] or times), len(answers[-1].body))


def _line(pair: list[Measured]) -> str:
    """Times of both, and how much longer the other takes."""
    cells = [
        f"{each.problem[:26]:>26}" if each.first_s is None else f"{each.first_s:>15.3f} s {each.median_s:>7.3f} s"
        for each in pair
    ]
    ratio = ""
    if len(pair) == 2 and all(each.first_s and each.median_s for each in pair):
        ours, theirs = pair
        assert ours.first_s and theirs.first_s and ours.median_s and theirs.median_s
        ratio = f"{theirs.first_s / ours.first_s:.1f}, {theirs.median_s / ours.median_s:.1f}"
    return " ".join([f"{pair[0].case:46}", *cells, f"{ratio:>14}"])


def _cases(ids: Mapping[str, str], options: argparse.Namespace) -> Iterator[Case]:
    def page(run: str, path: str, **params: Any) -> Ask:
        return lambda server, _: server.ask(f"/api/v1/runs/{ids[run]}/{path}", params)

    def get(path: str, **params: Any) -> Ask:
        return lambda server, _: server.ask(f"{V1}/{path}", params)

    def query(run: str) -> dict[str, Any]:
        return {"profile": "./profiler", "train_id": f"./{run}"}

    yield Case("list of runs", lambda s, _: s.ask("/api/v1/runs"), get("datavisual/train-jobs", offset=0, limit=20))
    yield Case(
        f"operators: a page of {options.kernels:,}, each another",
        lambda server, number: server.ask(
            f"/api/v1/runs/{ids[OPERATORS]}/pages/ops/operator_instances",
            {"rank": 0, "top": 10, "page": 1 + 7 * number, "sort": "-total_ns"},
        ),
        lambda server, number: server.ask(
            f"{V1}/profile/ops/search",
            query(OPERATORS),
            {
                "op_type": "aicore_detail",
                "device_id": "0",
                "filter_condition": {},
                "sort_condition": {"name": "execution_frequency", "type": "descending"},
                "group_condition": {"limit": 10, "offset": 7 * number},
            },
        ),
        times=9,
    )
    yield Case(
        "operators by type",
        page(OPERATORS, "pages/ops/operator_types", rank=0),
        lambda server, _: server.ask(
            f"{V1}/profile/ops/search",
            query(OPERATORS),
            {"op_type": "aicore_type", "device_id": "0", "filter_condition": {}},
        ),
    )
    yield Case(
        "step trace of a rank",
        page(CLUSTER, "pages/steps", rank=1),
        get("profile/training-trace/graph", dir=f"./{CLUSTER}", type=0, device_id=1),
    )
    step = {"filter_condition": {"step_id": 0}, "group_condition": {"limit": 100, "offset": 0}}
    yield Case(
        f"step trace of {options.ranks} ranks",
        page(CLUSTER, "pages/ranks/rank_means", top=100),
        lambda server, _: server.ask(f"{V1}/profile/cluster-step-trace-summary", {"train_id": f"./{CLUSTER}"}, step),
    )
    yield Case(
        f"communication of {options.ranks} ranks",
        page(CLUSTER, "pages/communication/rank_communication", top=1000),
        lambda server, _: server.ask(
            f"{V1}/profile/search-cluster-communication",
            {"train_id": f"./{CLUSTER}"},
            {"filter_condition": {"step_id": 0}},
        ),
    )
    yield Case(
        f"advice of {options.ranks} ranks",
        page(CLUSTER, "overview"),
        get("profile/summary/cluster-propose", train_id=f"./{CLUSTER}"),
        times=2,
    )
    yield Case(
        f"timeline of {options.events:,} events",
        page(TIMELINE, "timeline", ranks="0"),
        get("profile/timeline", dir=f"./{TIMELINE}", device_id=0, device_type="ascend", scope_name_num=0),
        times=2,
    )


def _memory(small: Path, peer: Path | None, scratch: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Open many runs, then let many clients click through them."""
    runs = many_runs(small, scratch / "many", options.runs)
    found: dict[str, Any] = {}
    with stepscope(scratch / "many", scratch / "cache-many") as server:
        wait_until_ready(server, len(runs))
    with stepscope(scratch / "many", scratch / "cache-many") as server:
        wait_until_ready(server, len(runs))
        ids = [run["id"] for run in server.ask("/api/v1/runs", {"top": 100}).json()["runs"]]
        found["stepscope_started"] = str(server.memory())
        for identity in ids:
            for path in ("overview", "pages/steps", "pages/ops", "pages/ranks", "pages/communication", "pages/memory"):
                server.ask(f"/api/v1/runs/{identity}/{path}")
        found["stepscope_opened"] = str(server.memory())
        print(
            f"\n{len(ids)} runs: stepscope at the start {found['stepscope_started']}; with six pages of each open "
            f"{found['stepscope_opened']}"
        )
        starts = ["/", *(f"/runs/{identity}" for identity in ids)]
        print(f"\n{options.clients} clients click for {options.seconds:.0f} s, {options.think} s after each page:")
        clicks = load(
            server,
            starts,
            clients=options.clients,
            seconds=options.seconds,
            think_s=options.think,
            seed=options.seed,
        )
        print("\n".join(f"  {line}" for line in clicks.lines()))
        found["load"] = clicks.lines()
    if peer is not None:
        served = copied({run.name: run for run in runs}, scratch / "summary-many")
        with mindinsight(peer, served, scratch / "workspace-many") as other:
            found["mindinsight_started"] = str(other.memory())
            for run in runs:
                query = {"profile": "./profiler", "train_id": f"./{run.name}"}
                here = {"dir": f"./{run.name}", "device_id": 0}
                other.ask(f"{V1}/profile/training-trace/graph", {**here, "type": 0})
                other.ask(f"{V1}/profile/summary/propose", {**query, "device_id": 0})
                other.ask(f"{V1}/profile/summary/cluster-propose", {"train_id": f"./{run.name}"})
                other.ask(f"{V1}/profile/memory-graphics", {**here, "device_type": "ascend"})
                search = {"op_type": "aicore_detail", "device_id": "0", "filter_condition": {}}
                other.ask(f"{V1}/profile/ops/search", query, search)
            found["mindinsight_opened"] = str(other.memory())
            print(
                f"{len(runs)} runs: MindInsight at the start {found['mindinsight_started']}; with five pages of each "
                f"asked {found['mindinsight_opened']}"
            )
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gen", type=Path, required=True, help="generator of jobs of MindSpore's Profiler")
    parser.add_argument("--mindinsight", type=Path, help="bin directory of an environment with MindInsight 2.3.1")
    parser.add_argument("--kernels", type=int, default=20_000, help="kernels of the operator page (default 20000)")
    parser.add_argument("--ranks", type=int, default=512, help="ranks of the cluster (default 512)")
    parser.add_argument("--events", type=int, default=1_000_000, help="events of the timeline (default 1000000)")
    parser.add_argument("--runs", type=int, default=20, help="runs that are open at a time (default 20)")
    parser.add_argument("--clients", type=int, default=50, help="clients of the load (default 50)")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long they click (default 120)")
    parser.add_argument("--think", type=float, default=2.0, help="mean pause before a click, seconds (default 2)")
    parser.add_argument("--seed", type=int, default=1, help="of what clients choose (default 1)")
    parser.add_argument("--scratch", type=Path, help="where inputs are made (default: the system's)")
    parser.add_argument("--out", type=Path, help="write the figures there as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
