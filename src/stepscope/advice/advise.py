"""Ask every rule, and rank what they find by what it would save."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stepscope.advice import (
    ai_cpu,
    checkpoint,
    compile_time,
    cpu_busy,
    data_loader,
    data_queue,
    exposed_communication,
    host_queue,
    idle_time,
    iteration_interval,
    memory_capacity,
    memory_copies,
    memory_fragmentation,
    memory_leak,
    pipeline_bottleneck,
    single_pause,
    slow_group,
    slow_link,
    slow_rank,
)
from stepscope.advice.base import RULES, SEVERITIES, Finding
from stepscope.advice.claims import claimed_once
from stepscope.advice.units import unit_of
from stepscope.errors import Unavailable

if TYPE_CHECKING:
    from stepscope.run import Run

MODULES = (
    slow_rank,
    slow_link,
    slow_group,
    idle_time,
    single_pause,
    checkpoint,
    exposed_communication,
    memory_copies,
    compile_time,
    iteration_interval,
    host_queue,
    data_queue,
    pipeline_bottleneck,
    data_loader,
    cpu_busy,
    ai_cpu,
    memory_capacity,
    memory_leak,
    memory_fragmentation,
)
"""Importing a rule's module registers it; this is the one list to add to."""


def advise(run: Run) -> list[Finding]:
    """All findings about a run, greatest saving first, then by severity; no saving is claimed twice (`claims`).

    A rule whose data is missing has nothing to say; what is missing is told by the run's coverage.
    """
    findings: list[Finding] = []
    for name, function in RULES.items():
        changed = {"limits": run.limits[name]} if name in run.limits else {}
        try:
            findings.extend(run.analyse(function, **changed))
        except Unavailable:
            continue
    per = run.analyse(unit_of).per  # also of those that claim no saving, which leave it open
    findings = [finding if finding.saving_ns else replace(finding, per=per) for finding in findings]
    return sorted(claimed_once(findings), key=lambda f: (-f.saving_ns, SEVERITIES.index(f.severity), f.rule, f.summary))
