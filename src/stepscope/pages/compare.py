"""What differs between two runs, two ranks of a run, or two parts of it, and whether that is more than noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stepscope.errors import Unavailable
from stepscope.pages.base import BASE_CHOOSING, Derived, Option, Page, Section
from stepscope.present import duration, listed

if TYPE_CHECKING:
    import polars as pl

    from stepscope.compare import Pair

Row = Mapping[str, Any]

BY = Option(
    "by",
    "text",
    "Compare kernels by type, name, shape, class (of work) or the operator that launched them. Default: the type, or "
    "what both sides have most in common.",
    "KIND",
)

NAMED = 3
"""How many parts or names a sentence lists."""

LARGE = 0.1
"""Share of the difference from which on a sentence names a part."""

OWN, OTHERS = 0.5, 0.1
"""One rank alone is slower if its own time explains this share of the difference, and the median rank's less."""

UNCERTAIN = ("noise", "same", "small")
"""Verdicts of differences that no sentence names."""


def opening(pair: Pair) -> Iterator[str]:
    """What differs, in sentences: the step, its parts, kernels and ranks; then what the comparison rests on."""
    rows = _rows(pair, "time_differences")
    if rows:
        yield _step(pair, rows[0])
        yield from _parts(rows)
        yield from _kernels(pair)
        yield from _own_rank(pair, rows[0])
    yield from pair.notes
    yield from _settings(pair)
    yield from _sides(pair)


def _rows(pair: Pair, question: str) -> list[dict[str, Any]]:
    try:
        return pair.analyse(question).to_dicts()
    except Unavailable:
        return []


def _step(pair: Pair, row: Row) -> str:
    base, new, change = row["base_ns"], row["new_ns"], row["change_factor"]
    counts = listed([str(side["steps"]) for side in _rows(pair, "compared_sides")])
    if row["verdict"] == "same":
        return f"{{The_step}} takes the same time: {duration(base)} and {duration(new)}."
    word = "slower" if new > base else "faster"
    how = {
        "noise": f"This is within noise: steps of one side differ as much ({counts} steps)",
        "too few": f"Too few steps to tell whether this is noise ({counts})",
    }.get(row["verdict"], f"This is beyond noise ({counts} steps)")
    p = row["probability_ratio"]
    chance = "" if p is None else f": chance gives such a difference in {p:.1%} of cases"
    return (
        f"{{The_step}} is {_times(change)} {word}: {duration(new)} instead of {duration(base)} "
        f"({_signed(new - base)}). {how}{chance}."
    )


def _times(factor: float) -> str:
    """How much slower or faster, e.g. `1.30 times`, `2.0 %`."""
    ratio = max(factor, 1 / factor) if factor else 0.0
    return f"{ratio:.2f} times" if ratio >= 1.1 else f"{ratio - 1:.1%}"


def _signed(ns: float) -> str:
    return f"{'+' if ns > 0 else '-' if ns < 0 else ''}{duration(abs(ns))}"


def _parts(rows: Sequence[Row]) -> Iterator[str]:
    """The parts of the step that make most of the difference, each with its own parts."""
    total = rows[0]["difference_ns"]
    if rows[0]["verdict"] == "same":
        largest = max((abs(row["difference_ns"]) for row in rows[1:]), default=0)
        total = largest if largest > LARGE * rows[0]["base_ns"] else 0
    texts = []
    for row in rows[1:]:
        if row["level"] == 1 and _is_large(row, total):
            inner = [part for part in rows if part["of"] == row["part"] and _is_large(part, total)][:NAMED]
            more = ", ".join(f"{_name(part)} {_signed(part['difference_ns'])}" for part in inner)
            texts.append(f"{_name(row)} {_signed(row['difference_ns'])}" + (f" ({more})" if len(inner) else ""))
    if texts:
        yield f"By part: {'; '.join(texts)}."


def _name(row: Row) -> str:
    return str(row["part"]).replace("_", " ")


def _is_large(row: Row, total: int) -> bool:
    return total != 0 and abs(row["difference_ns"]) >= LARGE * abs(total) and row["verdict"] not in UNCERTAIN


def _kernels(pair: Pair) -> Iterator[str]:
    """What the kernels that take another time have in common."""
    for row in _rows(pair, "kernel_change"):
        if row["kind"] != "compute" or row["pattern"] == "none":
            continue
        if row["pattern"] == "only" and _is_by_class(pair):
            continue
        word = "slower" if row["difference_ns"] > 0 else "faster"
        names = listed(_short(row["names"][:NAMED])) or "all"
        by = "" if row["factor"] is None else _times(row["factor"])
        texts = {
            "alike": f"Kernels are uniformly {by} {word}, whatever they compute: as by another clock, power limit or "
            "device, not by another program.",
            "matrix": f"Kernels that multiply matrices are {by} {word} ({names}), the others are not.",
            "vector": f"Kernels that do not multiply matrices are {by} {word} ({names}), the others are not.",
            "some": f"Calls of equal shapes are {by} {word} in {names}.",
            "calls": f"The number of calls differs most: {names}.",
            "shapes": f"Calls have other shapes: {names}.",
            "only": f"Most of it is in kernels that only one side runs: {names}.",
        }
        if text := texts.get(row["pattern"]):
            yield text


def _is_by_class(pair: Pair) -> bool:
    """Whether kernels of both sides have no names in common."""
    rows = _rows(pair, "kernel_differences")
    return bool(rows) and rows[0]["compared_by"] == "class"


def _short(names: list[str]) -> list[str]:
    """Names of kernels without their parameters."""
    import polars as pl  # noqa: PLC0415 - a command line reads this page before any data

    from stepscope.pages.short_names import readable  # noqa: PLC0415

    return readable(pl.DataFrame({"name": names}, schema={"name": pl.String}))["name"].to_list()


def _own_rank(pair: Pair, step: Row) -> Iterator[str]:
    """That one rank alone takes longer, for which the others wait."""
    rows = [row for row in _rows(pair, "rank_differences") if row["own_difference_ns"] is not None]
    total = step["difference_ns"]
    if len(rows) < 3 or step["verdict"] in UNCERTAIN or total <= 0:
        return
    own = sorted(row["own_difference_ns"] for row in rows)
    if own[-1] >= OWN * total and own[len(own) // 2] <= OTHERS * total:
        rank = next(row["rank"] for row in rows if row["own_difference_ns"] == own[-1])
        yield (
            f"Of the ranks, {rank} takes most longer itself ({_signed(own[-1])} without communication); "
            f"most others do not ({_signed(own[len(own) // 2])}). Look at it alone with --ranks {rank}."
        )


def _settings(pair: Pair) -> Iterator[str]:
    """Settings that make times hard to compare. One that a side did not record may be the same."""
    rows = [row for row in _rows(pair, "setting_differences") if row["matters"] == "work"]
    if known := [row for row in rows if row["base"] and row["new"]]:
        what = "; ".join(f"{row['setting']}: {row['base']} and {row['new']}" for row in known)
        yield f"Not the same work, so compare with care: {what}."


def _sides(pair: Pair) -> Iterator[str]:
    """Which ranks and steps are compared, and how."""
    rows = _rows(pair, "compared_sides")
    if len(rows) != 2:
        return
    of_base, of_new = (row["ranks"] for row in rows)
    if of_base.isdecimal() and of_new.isdecimal() and (of_base != of_new or pair.is_one_run) and not pair.notes:
        yield f"Rank {of_new} is compared with rank {of_base}" + (" of the base." if not pair.is_one_run else ".")
    elif of_base != of_new and not pair.notes:
        yield f"Compared are the means over ranks {of_base} of the base and {of_new} of the new side."
    of_base, of_new = (row["counted_steps"] for row in rows)
    if of_base != of_new:
        yield f"Compared are steps {of_base} of the base and {of_new} of the new side."
    for row in rows:
        if row["left_out_steps"]:
            yield f"Of the {row['side']}, step {row['left_out_steps']} does not count: a first step, far longer."
        if row["outlier_steps"]:
            yield (
                f"Of the {row['side']}, step {row['outlier_steps']} stands out: it counts in the means, "
                "the test weighs it no more than others."
            )


def _tested(_: Pair, rows: pl.DataFrame) -> Iterator[str]:
    if rows["probability_ratio"].count():
        yield (
            "p: how often chance alone gives such a difference between the {steps} of both sides (Mann-Whitney test, "
            "adjusted for the number of rows); more or less up to 5.0%."
        )


def _indented(_: Pair, rows: pl.DataFrame) -> Derived:
    """Parts of parts with a dash in front of their names."""
    import polars as pl  # noqa: PLC0415 - a command line reads this page before any data

    dash = pl.when(pl.col("level") > 1).then(pl.lit("- ")).otherwise(pl.lit(""))
    return Derived(rows.with_columns(part=dash + pl.col("part").str.replace_all("_", " ")))


def _by(_: Pair, rows: pl.DataFrame) -> Iterator[str]:
    by = rows["compared_by"][0] if rows.height else "type"
    texts = {
        "class": "Kernels of both sides have no names in common, so they are compared by class of work.",
        "operator": "These are the operators that launched the kernels, with the kernels' time; --by type for kernels.",
    }
    if by in texts:
        yield texts[by]


def _measured(_: Pair, rows: pl.DataFrame) -> Iterator[str]:
    if rows.height:
        device = "the time of the kernels that each launched itself"
        yield f"Compared is {device if rows['measured'][0] == 'device' else 'the own time of each on the host'}."


def _changed(_: Pair, rows: pl.DataFrame) -> Derived:
    """Rows without those that are the same."""
    return Derived(rows.filter(rows["verdict"] != "same"))


def _unchanged(rows: pl.DataFrame) -> Iterator[str]:
    if (same := rows.filter(rows["verdict"] == "same").height) and same == rows.height:
        yield f"Memory: all {same} figures are the same."


ROWS = 12
"""Rows of a table: there are many tables."""

PAGE = Page(
    "compare",
    "Compare two runs, or two ranks or parts of one: what got slower, by how much, and whether that is noise.",
    [
        Section(
            "time_differences",
            "Time of {a_step} by part",
            hidden=("of", "level"),
            derived=_indented,
            notes=_tested,
        ),
        Section(
            "kernel_differences",
            "Kernels in {a_step}",
            takes={"by": "by"},
            hidden=("compared_by", "probability_ratio"),
            notes=_by,
            rows=ROWS,
        ),
        Section(
            "operator_differences",
            "Operators in {a_step}",
            hidden=("measured", "probability_ratio", "of_step_ratio"),
            notes=_measured,
            rows=ROWS,
        ),
        Section("module_differences", "Modules in {a_step}", hidden=("probability_ratio",), rows=ROWS),
        Section(
            "api_differences",
            "Calls on the host in {a_step}",
            hidden=("probability_ratio", "share_ratio"),
            rows=ROWS,
        ),
        Section(
            "communication_differences",
            "Communication in {a_step}",
            hidden=("probability_ratio", "share_ratio"),
            rows=ROWS,
        ),
        Section("memory_differences", "Memory", derived=_changed, sentences=_unchanged, rows=ROWS),
        Section("operator_type_differences", "Operators by type, whole recording", unless="kernel_differences"),
        Section("rank_differences", "Ranks", hidden=("probability_ratio", "share_ratio", "of_step_ratio")),
        Section("setting_differences", "What else differs"),
        Section("compared_sides", "Compared"),
        Section("kernel_change"),
    ],
    options=[BY, *BASE_CHOOSING],
    more="NEW is measured against BASE. Of one run, the slowest rank is compared with a typical one, unless ranks or "
    "steps are chosen. Times are means of a step over the ranks of a side.",
    scope="pair",
    opening=opening,
)
