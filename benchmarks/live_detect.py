"""How well the online detector finds what slows down a running job, how soon, and how often it is wrong.

    benchmarks/live_detect.py [--cases 247] [--hours 1] [--seed N] [--only TEXT] [--jobs 2] [--real N]
        [--json FILE] [--show]

Jobs are simulated (`simulated_live/`) as the digests that workers send, with known faults; the detector gets them as a
manager would. The same streams go to published rules beside it (`simulated_live/baselines.py`). The default seeds and
some sizes of faults were not used to choose limits; `--tuning` takes those that were.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

if TYPE_CHECKING:
    from simulated_live.jobs import Job
    from simulated_live.scoring import Score


def run(job: Job) -> Score:
    """Simulate a job and score what is said of it."""
    from simulated_live.baselines import Beside  # noqa: PLC0415
    from simulated_live.play import play  # noqa: PLC0415
    from simulated_live.scoring import blamed_ranks, score  # noqa: PLC0415
    from stepscope.live.detect import Detector  # noqa: PLC0415

    with_rules = job.layout.world <= 64 and job.steps <= 20_000
    beside = Beside(job.onset) if with_rules else None
    played = play(job, Detector(), beside.step if beside else None)
    found = score(played)
    if beside:
        for name, blamed in beside.blamed.items():
            true, false, faults = blamed_ranks(job, blamed)
            false += len(beside.early[name])
            delays = [step - job.onset + 1 for (_, rank), step in blamed.items() if _is_guilty(job, rank)]
            found.baselines[name] = true, false, faults, delays
    return found


def _is_guilty(job: Job, rank: int) -> bool:
    return any(rank in fault.ranks for fault in job.faults)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=247, help="jobs with faults")
    parser.add_argument("--hours", type=float, default=1.0, help="simulated hours of each kind of healthy job")
    parser.add_argument("--seed", type=int, help="of the first job; default: held out ones")
    parser.add_argument("--tuning", action="store_true", help="the seeds and sizes that limits were chosen with")
    parser.add_argument("--only", default="", help="only families whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--many", type=int, default=1024, help="ranks of the largest job; 0 for none")
    parser.add_argument("--real", type=int, default=0, help="also so many jobs of 4 real processes")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--show", action="store_true", help="print what was missed and what was wrong")
    chosen = parser.parse_args()
    from simulated_live.catalogue import FACTORS, HELD_OUT_FACTORS, HELD_OUT_SEED, cases, healthy, largest  # noqa: PLC0415
    from simulated_live.printing import described  # noqa: PLC0415

    seed = chosen.seed if chosen.seed is not None else 0 if chosen.tuning else HELD_OUT_SEED
    factors = FACTORS if chosen.tuning else HELD_OUT_FACTORS
    jobs = list(cases(chosen.cases, seed, factors, chosen.only)) if chosen.cases else []
    if chosen.hours:
        jobs += [job for job in healthy(chosen.hours, seed + 50_000) if chosen.only in job.family + job.name]
    if chosen.many:
        jobs += largest(chosen.many, seed + 60_000)
    # the longest first, so that processes end together
    jobs.sort(key=lambda job: -job.steps * job.layout.world)
    began = time.time()
    with multiprocessing.get_context("fork").Pool(chosen.jobs) as pool:
        scores = pool.map(run, jobs, chunksize=1)
    if chosen.real:
        from simulated_live.real import run_real  # noqa: PLC0415

        scores += [run_real(number) for number in range(chosen.real)]
    print("\n".join(described(scores)))
    print(f"{len(scores)} jobs in {time.time() - began:.0f} s")
    if chosen.show:
        for one in scores:
            for miss in one.misses:
                print(f"  {one.job} ({one.magnitude}, {one.ranks} ranks): {miss}")
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(one) for one in scores], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
