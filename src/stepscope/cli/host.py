"""`stepscope host`: what the host of a rank spent its time, processors and memory on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.cli.asking import Table, asks
from stepscope.cli.options import OneStep, Steps


def cpu_summary(options: Mapping[str, Any]) -> Table:
    """The table of CPU use, which `input` shows, too."""
    return Table(
        "cpu_summary",
        "CPU of host, process, workers and dataset operators",
        options,
        every_step=True,
        keeps=(
            *("name", "mean_busy_processors", "scope", "max_busy_processors", "mean_idle_ratio", "mean_user_ratio"),
            *("mean_system_ratio", "samples"),
        ),
    )


@asks
def host(step: OneStep = None, steps: Steps = None) -> Sequence[Table]:
    """Show what the host did for a rank: time and memory by module, event and stage, and use of its processors."""
    chosen = steps if step is None else step
    of_steps = {} if chosen is None else {"chosen": chosen}
    return [
        Table(
            "host_time",
            "Host time by module, event and stage",
            of_steps,
            every_step=True,
            hidden=("steps",),
            keeps=("event", "total_ns", "module", "stage", "count", "self_ns", "share_ratio", "max_ns"),
        ),
        Table(
            "host_memory",
            "Host memory by module, event and stage",
            of_steps,
            every_step=True,
            hidden=("steps",),
            keeps=("event", "growth_bytes", "module", "stage", "max_bytes", "last_bytes"),
        ),
        Table("host_memory_curve", "Host memory over time", of_steps, every_step=True),
        cpu_summary(of_steps),
        Table(
            "cpu_utilization",
            "Samples of the CPU",
            of_steps,
            every_step=True,
            keeps=("name", "busy_processors", "time_ns", "step", "scope", "idle_ratio", "user_ratio", "system_ratio"),
        ),
    ]
