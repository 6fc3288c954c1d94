"""The limits of rules, of the analyses that they use and of the verdict, and how to override them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stepscope import plugins
from stepscope.advice import rules as _rules  # noqa: F401 - importing them registers them
from stepscope.advice.registry import RULES
from stepscope.analysis import ANALYSES
from stepscope.analysis.parameters import LIMITS, RULE_OPTIONS, parameters_of
from stepscope.limits import described, limit, overridden, read_limits

SCHEMA = {
    "rule": pl.String,
    "limits_of": pl.String,
    "limit": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "source": pl.String,
    "says": pl.String,
}


VERDICT = "verdict"


@dataclass(frozen=True)
class VerdictLimits:
    """When the verdict mentions facts regardless of findings."""

    much_idle_ratio: float = limit(
        0.50, "of the time, for the verdict always to name idle time", "chosen by us, as for unexplained idle time"
    )
    many_unknown_ratio: float = limit(
        0.20, "of the steps, without operators, for the verdict to state how many steps it covers", "chosen by us"
    )


RULE_OPTIONS[VERDICT] = {LIMITS: VerdictLimits()}


def limit_sets() -> dict[str, Any]:
    """Limits by rule or analysis; and of the verdict and of comparisons, if their modules are loaded."""
    plugins.install()
    known = {name: one.parameters.options for name, one in ANALYSES.items()}
    known |= RULE_OPTIONS
    return {name: options[LIMITS] for name, options in known.items() if is_dataclass(options.get(LIMITS))}


def limits_from(changes: Mapping[str, Any], where: str = "limits") -> dict[str, Any]:
    """Limits for `Run.with_limits`.

    Args:
        changes: Rule or analysis to limit to value, e.g. `{"input_stages": {"host_empty_ratio": 0.2}}`.
        where: Origin of the changes, for errors.

    Raises:
        StepscopeError: If a rule or limit is unknown, or a value is not a number of at least 0.
    """
    return overridden(limit_sets(), changes, where)


def limits_in(file: Path | None) -> dict[str, Any]:
    """The sets of limits that a TOML file changes; none without a file.

    Raises:
        StepscopeError: If it cannot be read, or names a rule or limit that does not exist.
    """
    return {} if file is None else limits_from(read_limits(file), str(file))


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
        says = " ".join((inspect.getdoc(rule.function) or "").split("\n\n")[0].split())
        needs = parameters_of(name, rule.function, ANALYSES).needs
        owners = [owner for owner in (name, *(other for other in needs if needs[other])) if owner in sets]
        described_limits = [{"limits_of": owner, **one} for owner in owners for one in described(sets[owner])]
        rows += [{"rule": name, "says": says, **one} for one in described_limits or [dict[str, Any]()]]
    behind = {row.get("limits_of") for row in rows}
    for owner in sorted(sets.keys() - behind):
        rows += [{"limits_of": owner, **one} for one in described(sets[owner])]
    return pl.DataFrame(rows, schema=SCHEMA)
