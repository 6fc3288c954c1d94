"""`stepscope rules`: the rules and their limits, and what is behind one of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from stepscope import plugins
from stepscope.cli import options as shared
from stepscope.cli.formatted import described, formatted, signed
from stepscope.cli.notes import note_warnings
from stepscope.cli.options import Command, Format, LimitsFile, argument
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    import polars as pl

    from stepscope.advice.explained import Explanation


class RuleCommands(TyperGroup):
    """Commands about rules, which say what to type if a rule is given in place of a command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """See the base class; the name of a rule is an error that says how to ask about it."""
        if args[0] not in self.commands:
            import stepscope.advice  # noqa: F401 - registers the rules
            from stepscope.advice.registry import RULES

            if args[0] in RULES:
                ctx.fail(f"{args[0]} is a rule. To explain it: stepscope rules explain {args[0]}")
        return super().resolve_command(ctx, args)


rules = typer.Typer(
    cls=RuleCommands,
    help="List all rules, with their limits or without, or explain one of them.",
    rich_markup_mode=None,
    invoke_without_command=True,
)


@rules.command("list", cls=Command, short_help="List all rules.")
@formatted
def list_(
    limits: LimitsFile = None,
    *,
    with_limits: Annotated[
        bool, typer.Option("--with-limits", help="Show the limits of each rule as well, with units and sources.")
    ] = False,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print all limits as TOML, in the format that --limits reads.")
    ] = False,
    form: Format,
    wide: bool,
) -> None:
    """List all rules by what part of training they are about: what each reports. JSON and CSV have all limits."""
    from stepscope.advice.limit_sets import limits_in, rule_table
    from stepscope.cli.output import Output, print_frame
    from stepscope.compare import Pair as _Pair  # noqa: F401 - registers the limits of comparisons
    from stepscope.present import plural

    if toml and form != "table":
        raise StepscopeError(f"conflicting formats toml and {form}: choose one")
    table = rule_table(limits_in(limits))
    if toml:
        limited = table.drop_nulls("limits_of").unique(["limits_of", "limit"], maintain_order=True)
        print(_toml(limited.sort("limits_of", maintain_order=True).rows(named=True)))
    elif form == "table":
        out = Output(wide=wide)
        (_show_limits if with_limits or limits else _show_rules)(out, table)
        count = table["rule"].drop_nulls().n_unique()
        more = "" if with_limits or limits else "; --with-limits shows limits"
        out.say(f"{plural(count, 'rule')}; `stepscope rules explain RULE` explains one{more}")
    else:
        print_frame(table, form)
    note_warnings(plugins.problems.values())


def _show_rules(out: Any, table: pl.DataFrame) -> None:
    """A line or two for each rule, by dimension."""
    from stepscope.advice.registry import DIMENSIONS, RULES

    says = dict(table.drop_nulls("rule").select("rule", "says").iter_rows())
    room = max(map(len, says), default=0) + 4
    for dimension in DIMENSIONS:
        out.say(dimension.capitalize(), "bold")
        for name in sorted(name for name in says if RULES[name].dimension == dimension):
            out.say(f"  {name:{room - 2}}{_what(says[name])}", indent=room)
        out.say("")


def _what(says: str) -> str:
    """What a rule reports, without the words that most of them begin with."""
    first = says.split(". ", maxsplit=1)[0].rstrip(".").removeprefix("Report ")
    return first[:1].upper() + first[1:] + "."


def _show_limits(out: Any, table: pl.DataFrame) -> None:
    """Each rule with a table of its limits."""
    for (name,), rows in table.partition_by("rule", as_dict=True, maintain_order=True).items():
        heading = "No rule by itself" if name is None else f"{name}: {rows['says'][0]}"
        limited = rows.drop("rule", "says").drop_nulls()
        if limited.is_empty():
            out.say(heading, "bold")
        else:
            out.raw_table(limited, heading, whole=True)
        out.say("")


def _list_unless_asked(ctx: typer.Context, **words: Any) -> None:
    if ctx.invoked_subcommand is None:
        list_(**words)


rules.callback()(
    signed(
        _list_unless_asked,
        {**{name: each for name, each in described(_list_unless_asked).items() if name == "ctx"}, **described(list_)},
    )
)


@rules.command("explain", cls=Command, short_help="Show what a rule does, needs, decides by and says.")
@formatted
def explain(
    rule: Annotated[str, argument("RULE", "Name of the rule, e.g. slow-rank.")],
    limits: LimitsFile = None,
    language: shared.LanguageOption = "en",
    *,
    form: Format,
    wide: bool,
) -> None:
    """Show what a rule does, needs, decides by, and says: limits, messages, actions, and what its findings explain."""
    from stepscope.advice.explained import explained
    from stepscope.advice.limit_sets import limits_in
    from stepscope.cli.output import Output, print_document

    if form == "csv":
        raise StepscopeError("an explanation is text or JSON. Leave out --csv, or ask `stepscope rules list --csv`")
    known = explained(rule, language, limits_in(limits))
    if form == "json":
        print_document(asdict(known))
    else:
        _show(Output(wide=wide), known)
    note_warnings(plugins.problems.values())


def _show(out: Any, known: Explanation) -> None:
    from stepscope.advice.explained import sections

    out.say(f"{known.rule} ({known.dimension})", "bold")
    for heading, lines in sections(known):
        out.say("")
        out.say(heading, "bold")
        for line in lines:
            out.say(f"  {line}", indent=4)


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
