"""What the host of a rank spends its time, processors and memory on."""

from __future__ import annotations

from stepscope.pages.base import STEPS, Page, Section
from stepscope.pages.instead import MARKED_STEPS, recorded_by

_TAKES = {"step": "chosen", "steps": "chosen"}

CPU_SUMMARY = Section(
    "cpu_summary", "CPU usage of host, process, workers and dataset operators", takes=_TAKES, every_step=True
)
"""Also on the page of the input."""

PAGE = Page(
    "host",
    "Show what the host did for a rank: time and memory by module, event and stage, and CPU usage.",
    [
        Section("host_time", "Host time by module, event and stage", takes=_TAKES, every_step=True, hidden=("steps",)),
        Section(
            "host_memory", "Host memory by module, event and stage", takes=_TAKES, every_step=True, hidden=("steps",)
        ),
        Section("host_memory_curve", "Host memory over time", takes=_TAKES, every_step=True),
        CPU_SUMMARY,
        Section("cpu_utilization", "Samples of the CPU", takes=_TAKES, every_step=True),
    ],
    options=[STEPS],
    instead=recorded_by(
        "`stepscope record` samples the host",
        MARKED_STEPS,
    ),
)
