"""Write the tables of docs/rules.md from the rules and their limits: `python docs/make_rules.py`."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.advice import RULES, rule_table
from stepscope.advice.explained import OURS, explained, missing_lines, sections
from stepscope.compare import Pair as _Pair  # noqa: F401 - registers the limits of comparisons

PAGE = Path(__file__).with_name("rules.md")
BEGIN, END = "<!-- rules: made by docs/make_rules.py -->\n", "<!-- end of rules -->"


def page(text: str) -> str:
    """The page with its tables as the rules say."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + tables() + "\n" + explanations() + END + rest.partition(END)[2]


def tables() -> str:
    """A row for each rule, then a row for each limit."""
    known = rule_table()
    lines = ["| rule | what it does | turn: time that it claims | judged by |", "|---|---|---|---|"]
    rules = known.drop_nulls("rule").partition_by("rule", "says", as_dict=True, maintain_order=True)
    for (name, says), rows in rules.items():
        owners = rows["limits_of"].drop_nulls().unique(maintain_order=True)
        judged = ", ".join(f"`{owner}`" for owner in owners) or "-"
        lines.append(f"| `{name}` | {says} | {claimed(str(name))} | {judged} |")
    lines += ["", "| limits of | limit | value | unit | from |", "|---|---|---|---|---|"]
    limits = known.drop_nulls("limits_of").unique(["limits_of", "limit"], maintain_order=True)
    for row in limits.sort(pl.col("limits_of"), maintain_order=True).iter_rows(named=True):
        value = f"{row['value']:,.0f}".replace(",", " ") if row["value"].is_integer() else row["value"]
        lines.append(f"| `{row['limits_of']}` | `{row['limit']}` | {value} | {row['unit']} | {row['source']} |")
    return "\n".join(lines) + "\n"


def explanations() -> str:
    """A section for each of our rules, as `stepscope rules explain` shows it, and why tables may be missing."""
    lines = ["## Each rule", ""]
    missing: dict[str, tuple[str, ...]] = {}
    for name in sorted(name for name, one in RULES.items() if one.function.__module__.startswith(OURS)):
        known = explained(name)
        missing |= known.missing
        lines += [f"### {name}", "", f"Dimension: {known.dimension}", ""]
        for heading, told in sections(known, tables=False):
            lines += [f"**{heading}**", "", *told, ""]
    lines += ["## Why tables may be missing", "", *missing_lines(dict(sorted(missing.items())))]
    return "\n".join(lines) + "\n"


def claimed(name: str) -> str:
    """Which time a rule claims, in which turn, and what is claimed of it before."""
    claim = RULES[name].claim
    if claim is None:
        return "-"
    time = f"the evidence `{claim.time_in}`" if claim.time_in else f"`{claim.time}`"
    yields = f"; less what lower turns claim of {', '.join(f'`{one}`' for one in claim.yields)}" if claim.yields else ""
    return f"{int(claim.turn)}: {time}{yields}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
