"""How well the product names who costs time in a job, and how much: jobs with known truth, by kind of fault.

    benchmarks/detect.py [--jobs 400] [--quick] [--only TEXT] [--gen SCRIPT] [--samples DIR] [--tree DIR]
        [--json FILE] [--beside FILE] [--show]

Each job is simulated with and without its faults, from the same random numbers; the product sees only the first one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulated.ascend import AscendJob
    from simulated.truth import Job

HERE = Path(__file__).parent
QUICK_JOBS = 90


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=400, help="how many jobs")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_JOBS} jobs, about one of each fault")
    parser.add_argument("--only", default="", help="only faults whose name contains this")
    parser.add_argument("--tree", type=Path, default=HERE.parent, help="the tree whose product is asked")
    parser.add_argument("--gen", type=Path, help="script that makes Ascend directories, for jobs on such devices")
    parser.add_argument("--samples", type=Path, help="directory of recorded PyTorch jobs, for replays of them")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--beside", type=Path, action="append", default=[], help="results to print beside these")
    parser.add_argument("--show", action="store_true", help="print each job with its truth and its claims")
    chosen = parser.parse_args()
    sys.path[:0] = [str(HERE), str(chosen.tree / "src")]
    from simulated.ascend import ascend_jobs  # noqa: PLC0415
    from simulated.catalogue import jobs  # noqa: PLC0415  from the chosen tree
    from simulated.printing import described, table  # noqa: PLC0415
    from simulated.recording import recorded  # noqa: PLC0415
    from simulated.replays import replays  # noqa: PLC0415
    from simulated.scoring import Score, score  # noqa: PLC0415

    scores: list[Score] = []
    found: Iterator[tuple[str, Job | AscendJob]] = jobs(QUICK_JOBS if chosen.quick else chosen.jobs, chosen.only)
    if chosen.gen:
        on_ascend = ascend_jobs(chosen.gen, 8 if chosen.quick else 24)
        found = chain(found, ((family, job) for family, job in on_ascend if chosen.only in family))
    if chosen.samples:
        found = chain(found, (each for each in replays(chosen.samples, 12) if chosen.only in each[0]))
    for family, job in found:
        with recorded(job) as run:
            scores.append(score(family, job.truth, run))
        if chosen.show:
            print(described(scores[-1]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps([vars(each) for each in scores], indent=1))
    before = [[Score(**each) for each in json.loads(path.read_text())] for path in chosen.beside]
    print("\n".join(table(scores, before, [path.stem for path in chosen.beside])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
