"""`stepscope rules`: the rules and their limits."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stepscope import plugins
from stepscope.cli.formatted import formatted
from stepscope.cli.notes import note_warnings
from stepscope.cli.options import Format, LimitsFile
from stepscope.errors import StepscopeError


@formatted
def rules(
    limits: LimitsFile = None,
    *,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print all limits as TOML, in the format that --limits reads.")
    ] = False,
    form: Format,
    wide: bool,
) -> None:
    """List all rules with their limits, the units, and where the limits come from."""
    from stepscope.advice.limit_sets import limits_in, rule_table
    from stepscope.cli.output import Output, print_frame
    from stepscope.present import plural

    if toml and form != "table":
        raise StepscopeError(f"conflicting formats toml and {form}: choose one")
    table = rule_table(limits_in(limits))
    if toml:
        limited = table.drop_nulls("limits_of").unique(["limits_of", "limit"], maintain_order=True)
        print(_toml(limited.sort("limits_of", maintain_order=True).rows(named=True)))
    elif form == "table":
        out = Output(wide=wide)
        for (name,), rows in table.partition_by("rule", as_dict=True, maintain_order=True).items():
            heading = "No rule by itself" if name is None else f"{name}: {rows['says'][0]}"
            limited = rows.drop("rule", "says").drop_nulls()
            if limited.is_empty():
                out.say(heading, "bold")
            else:
                out.raw_table(limited, heading, whole=True)
            out.say("")
        out.say(plural(table["rule"].drop_nulls().n_unique(), "rule"))
    else:
        print_frame(table, form)
    note_warnings(plugins.problems.values())


def _toml(rows: list[dict[str, Any]]) -> str:
    """The limits as TOML, with units and sources as comments."""
    lines: list[str] = []
    owner = None
    for row in rows:
        if row["limits_of"] != owner:
            owner = row["limits_of"]
            lines += ["", f"[{owner}]"]
        value = int(row["value"]) if row["value"].is_integer() else row["value"]
        lines.append(f"{row['limit']} = {value}  # {row['unit']}; {row['source']}")
    return "\n".join(lines[1:])
