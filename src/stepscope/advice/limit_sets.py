"""The limits of rules, of the analyses that they use and of the verdict, and how to override them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import polars as pl

from stepscope import plugins
from stepscope.advice import rules as _rules  # noqa: F401 - importing them registers them
from stepscope.advice import verdict_limits
from stepscope.advice.registry import RULES
from stepscope.analysis import ANALYSES
from stepscope.limits import described, overridden

SCHEMA = {
    "rule": pl.String,
    "limits_of": pl.String,
    "limit": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "source": pl.String,
    "says": pl.String,
}


def limit_sets() -> dict[str, Any]:
    """Limits by rule or analysis."""
    plugins.install()
    found: dict[str, Any] = {verdict_limits.NAME: verdict_limits.LIMITS}
    functions = {name: one.function for name, one in ANALYSES.items()}
    functions |= {name: one.function for name, one in RULES.items()}
    for name, function in functions.items():
        parameter = inspect.signature(function).parameters.get("limits")
        if parameter is not None and is_dataclass(parameter.default):
            found[name] = parameter.default
    return found


def limits_from(changes: Mapping[str, Any], where: str = "limits") -> dict[str, Any]:
    """Limits for `Run.with_limits`.

    Args:
        changes: Rule or analysis to limit to value, e.g. `{"input_stages": {"host_empty_ratio": 0.2}}`.
        where: Origin of the changes, for errors.

    Raises:
        StepscopeError: If a rule or limit is unknown, or a value is not a number of at least 0.
    """
    return overridden(limit_sets(), changes, where)


def rule_table(limits: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """Every rule with its limits.

    Args:
        limits: Sets that replace the defaults.

    Returns:
        One row per limit, or per rule without limits: `rule` (null for limits of analyses that no single rule uses),
        `limits_of` (the rule or analysis to override it for), `limit`, `value`, `unit`, `source`, `says` (what the rule
        reports).
    """
    sets = {**limit_sets(), **(limits or {})}
    rows: list[dict[str, Any]] = []
    for name, rule in sorted(RULES.items()):
        says = (inspect.getdoc(rule.function) or "").split("\n")[0]
        owners = [owner for owner in (name, *_analyses(rule.function)) if owner in sets]
        described_limits = [{"limits_of": owner, **one} for owner in owners for one in described(sets[owner])]
        rows += [{"rule": name, "says": says, **one} for one in described_limits or [dict[str, Any]()]]
    behind = {row.get("limits_of") for row in rows}
    for owner in sorted(sets.keys() - behind):
        rows += [{"limits_of": owner, **one} for one in described(sets[owner])]
    return pl.DataFrame(rows, schema=SCHEMA)


def _analyses(function: Any) -> list[str]:
    """The analyses that a rule requires."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.name in ANALYSES and "None" not in str(p.annotation)]
