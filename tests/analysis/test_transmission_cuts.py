"""What slow links cost is found by taking away what calls over them take longer than usual: simulated jobs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from simulated.faults import Fault
from simulated.frames import run_of
from simulated.layouts import Shape
from simulated.operations import SlowPath
from simulated.truth import Job

QUIET = {"steps": 3, "layers": 2, "kernel_noise": 0.0, "host_noise": 0.0, "call_noise": 0.0}
ON_HOSTS = Shape(ranks=4, ranks_per_host=2, layer_bytes=60_000_000, **QUIET)
IN_GROUPS = Shape(ranks=4, tensor=2, layer_bytes=80_000_000, **QUIET)


@pytest.mark.parametrize(
    ("shape", "ends", "links", "named"),
    [
        (ON_HOSTS, (0,), True, "nic=0"),
        (ON_HOSTS, (0,), True, "link=host0-host1"),
        (ON_HOSTS, (2, 3), True, "link=2-3"),
        (IN_GROUPS, (0, 1), False, "link=0-1"),
        (IN_GROUPS, (0, 1), False, "group=0-1,kind=communication"),
    ],
)
def test_a_slow_link_as_fast_as_others_saves_what_it_costs(shape: Shape, ends, links: bool, named: str) -> None:
    made = Job("slow", shape, [Fault("link", "link", ends, path=SlowPath(3.0, ends))], links=links)
    saved = run_of(made).analyse("what_if", without=named)["saving_ns"].to_list()

    assert sum(made.loss_ns) > 0.02 * sum(made.times.step_ns)
    assert sum(saved) == pytest.approx(sum(made.loss_ns), rel=0.03)
