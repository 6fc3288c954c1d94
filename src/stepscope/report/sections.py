"""The tables of a run's answers, by their names in the JSON document and in `stepscope analyze --table`."""

from __future__ import annotations

FINDINGS = "findings"

SECTIONS = {
    "breakdown": "steps",
    "communication": "communication",
    "slow_ranks": "slow_ranks",
    "slow_links": "slow_links",
    "slow_groups": "slow_groups",
    "idle": "idle",
    "kernel_totals": "kernels",
    "operator_summary": "operators",
    "arrival": "arrival",
}
"""Analysis to name."""
