"""`stepscope host`: what the host of a rank spent its time, processors and memory on."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.cli.asking import Table, asks
from stepscope.cli.options import OneStep, Steps


@asks
def host(step: OneStep = None, steps: Steps = None) -> Sequence[Table]:
    """Show what the host did for a rank: time and memory by module, event and stage, and use of its processors."""
    chosen = steps if step is None else step
    of_steps = {} if chosen is None else {"chosen": chosen}
    return [
        Table("host_time", "Host time by module, event and stage"),
        Table("host_memory", "Host memory by module, event and stage"),
        Table("host_memory_curve", "Host memory over time", every_step=True),
        Table("cpu_summary", "CPU of host, process, workers and dataset operators", of_steps, every_step=True),
        Table("cpu_utilization", "Samples of the CPU", of_steps, every_step=True),
    ]
