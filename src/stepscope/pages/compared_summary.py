"""What a comparison found, in sentences: the step or the own work of ranks, its parts, kernels, what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stepscope.pages.compared_basis import called, has_names, rows_of, settings, sides
from stepscope.present import duration, listed

if TYPE_CHECKING:
    from stepscope.compare import Pair

Row = Mapping[str, Any]

NAMED = 3
"""How many parts or names a sentence lists."""

LARGE = 0.1
"""Share of the difference from which on a sentence names a part."""

OWN, OTHERS = 0.5, 0.1
"""One rank alone is slower if its own time explains this share of the difference, and the median rank's less."""

UNCERTAIN = ("noise", "same", "small")
"""Verdicts of differences that no sentence names."""

LEAST_CHANCE = 0.001
"""The smallest probability that is written out."""

COMMUNICATION = "exposed communication"


def opening(pair: Pair) -> Iterator[str]:
    """What differs, in sentences: the step, its parts, kernels and ranks; then what the comparison rests on."""
    rows = rows_of(pair, "time_differences")
    if pair.without_steps:
        yield from _no_steps(pair)
        yield from _kernels(pair, rows)
    elif rows:
        own = rows_of(pair, "own_work_difference") if pair.are_ranks else []
        yield from _own_work(pair, own[0], rows) if own else _step_and_parts(pair, rows)
        yield from _kernels(pair, rows)
        yield from _own_rank(pair, rows[0])
        if pair.per == "recording":
            yield "No steps are known, so whole recordings are compared, which may hold different numbers of them."
    yield from pair.notes
    yield from settings(pair)
    yield from sides(pair)


def _no_steps(pair: Pair) -> Iterator[str]:
    """That a recording stands against a step."""
    which = called(pair.names[pair.without_steps == "new"].label)
    yield (
        f"Times cannot be compared: {which} has no steps, so its whole recording stands against a step of the other "
        "side. Only what single calls take is comparable. Record it with steps (prof.step() after each)."
    )


def _step_and_parts(pair: Pair, rows: Sequence[Row]) -> Iterator[str]:
    yield _step(pair, rows[0])
    total = rows[0]["difference_ns"]
    if rows[0]["verdict"] == "same":
        largest = max((abs(row["difference_ns"]) for row in rows[1:]), default=0)
        total = largest if largest > LARGE * rows[0]["base_ns"] else 0
    if texts := list(_parts(rows, total)):
        yield f"By part: {'; '.join(texts)}."


def _own_work(pair: Pair, own: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Which of two sides of a job takes longer itself, and that the other one waits."""
    sign = 1 if own["difference_ns"] > 0 else -1
    fast, slow = [name.whole for name in pair.names][::sign]
    if own["verdict"] in ("same", "small"):
        slow_ns, fast_ns = (own["new_ns"], own["base_ns"])[::sign]
        yield (
            f"Own work of {slow} takes about as long as that of {fast}: {duration(slow_ns)} and {duration(fast_ns)}, "
            "without communication."
        )
        yield _step(pair, rows[0])
        return
    total = abs(own["difference_ns"])
    parts = list(_parts([row for row in rows if COMMUNICATION not in (row["part"], row["of"])], total, sign))
    unsure = f", which as a whole is within noise ({_counts(pair)} {{steps}})" if own["verdict"] == "noise" else ""
    yield (
        f"Own work of {slow} takes {duration(total)} longer in {{a_step}} than that of {fast}{unsure}"
        + (f": {'; '.join(parts)}." if parts else ".")
    )
    of_calls = [row for row in rows if COMMUNICATION in (row["part"], row["of"])]
    longer = sign * of_calls[0]["difference_ns"] if of_calls else 0
    if -longer >= LARGE * total:
        yield _waiting(fast, rows[0], of_calls, sign)
    elif rows[0]["verdict"] == "same":
        yield _step(pair, rows[0])
    if longer >= LARGE * abs(rows[0]["difference_ns"]) and longer > 0:
        yield f"Its exposed communication takes {duration(longer)} longer as well{_listed(of_calls[1:], sign)}."
    if rows[0]["verdict"] != "same":
        yield _step(pair, rows[0])
    elif own["verdict"] == "too few":
        yield f"Too few {{steps}} to tell whether this is noise ({_counts(pair)})."


def _waiting(fast: str, step: Row, calls: Sequence[Row], sign: int) -> str:
    """That the faster side communicates for longer, as it waits."""
    whole, *inner = calls
    waits = "wait: their" if fast.startswith("ranks ") else "waits: its"
    longer = duration(-sign * whole["difference_ns"])
    text = f"In that time {fast} {waits} exposed communication takes {longer} longer{_listed(inner, -sign)}"
    if step["verdict"] != "same":
        return f"{text}."
    return f"{text}, so that {{the_step}} of both takes the same time: {duration(step['base_ns'])} and " + (
        f"{duration(step['new_ns'])}."
    )


def _listed(rows: Sequence[Row], sign: int) -> str:
    """Parts that take longer, in parentheses; empty if there are none."""
    parts = [f"{_name(row)} {_signed(sign * row['difference_ns'])}" for row in rows if sign * row["difference_ns"] > 0]
    return f" ({', '.join(parts)})" if parts else ""


def _step(pair: Pair, row: Row) -> str:
    base, new, change = row["base_ns"], row["new_ns"], row["change_factor"]
    is_named = has_names(pair)
    of_base, of_new = (name.whole for name in pair.names)
    if row["verdict"] == "same":
        whose = f" for {of_base} and {of_new}" if is_named else ""
        return f"{{The_step}} takes the same time{whose}: {duration(base)} and {duration(new)}."
    word = "slower" if new > base else "faster"
    whose = f" for {of_new} than for {of_base}" if is_named else ""
    counts = _counts(pair)
    how = {
        "noise": f"This is within noise: {{steps}} of one side differ as much ({counts} {{steps}})",
        "too few": f"Too few {{steps}} to tell whether this is noise ({counts})",
    }.get(row["verdict"], f"This is beyond noise ({counts} {{steps}})")
    p = row["probability_ratio"]
    rarely = "" if p is None else f"{p:.1%}" if p >= LEAST_CHANCE else f"less than {LEAST_CHANCE:.1%}"
    chance = f": chance gives such a difference in {rarely} of cases" if rarely else ""
    return (
        f"{{The_step}} is {_times(change)} {word}{whose}: {duration(new)} instead of {duration(base)} "
        f"({_signed(new - base)}). {how}{chance}."
    )


def _counts(pair: Pair) -> str:
    return listed([str(side["steps"]) for side in rows_of(pair, "compared_sides")])


def _times(factor: float) -> str:
    """How much slower or faster, e.g. `1.30 times`, or `2.0%` of the base's time."""
    ratio = max(factor, 1 / factor) if factor else 0.0
    return f"{ratio:.2f} times" if ratio >= 1.1 else f"{abs(factor - 1):.1%}"


def _signed(ns: float) -> str:
    return f"{'+' if ns > 0 else '-' if ns < 0 else ''}{duration(abs(ns))}"


def _parts(rows: Sequence[Row], total: int, sign: int = 1) -> Iterator[str]:
    """The parts of the step that make most of a difference, each with its own parts."""
    for row in rows:
        if row["level"] == 1 and _is_large(row, total):
            inner = [part for part in rows if part["of"] == row["part"] and _is_large(part, total)][:NAMED]
            more = ", ".join(f"{_name(part)} {_signed(sign * part['difference_ns'])}" for part in inner)
            yield f"{_name(row)} {_signed(sign * row['difference_ns'])}" + (f" ({more})" if inner else "")


def _name(row: Row) -> str:
    return str(row["part"]).replace("_", " ")


def _is_large(row: Row, total: int) -> bool:
    return total != 0 and abs(row["difference_ns"]) >= LARGE * abs(total) and row["verdict"] not in UNCERTAIN


def _kernels(pair: Pair, parts: Sequence[Row]) -> Iterator[str]:
    """What the kernels that take another time have in common, if computing differs beyond noise."""
    computing = next((row for row in parts if row["level"] == 1 and row["part"] == "computing"), None)
    if computing is not None and computing["verdict"] in UNCERTAIN and not pair.without_steps:
        return
    for row in rows_of(pair, "kernel_change"):
        if row["kind"] != "compute" or row["pattern"] == "none":
            continue
        if row["pattern"] == "only" and _is_by_class(pair):
            continue
        if pair.without_steps and row["factor"] is None:
            continue
        word = "slower" if row["difference_ns"] > 0 else "faster"
        whose = f" for {pair.names[1].label}" if has_names(pair) else ""
        names = listed(_short(row["names"][:NAMED])) or "all"
        by = "" if row["factor"] is None else _times(row["factor"])
        texts = {
            "alike": f"Kernels are uniformly {by} {word}{whose}, whatever they compute: as by another clock, power "
            "limit or device, not by another program.",
            "matrix": f"Kernels that multiply matrices are {by} {word}{whose} ({names}), the others are not.",
            "vector": f"Kernels that do not multiply matrices are {by} {word}{whose} ({names}), the others are not.",
            "some": f"Calls of equal shapes are {by} {word}{whose} in {names}.",
            "calls": f"The number of calls differs most: {names}.",
            "shapes": f"Calls have other shapes: {names}.",
            "only": f"Most of it is in kernels that only one side runs: {names}.",
        }
        if text := texts.get(row["pattern"]):
            yield text


def _is_by_class(pair: Pair) -> bool:
    """Whether kernels of both sides have no names in common."""
    rows = rows_of(pair, "kernel_differences")
    return bool(rows) and rows[0]["compared_by"] == "class"


def _short(names: list[str]) -> list[str]:
    """Names of kernels without their parameters."""
    import polars as pl  # noqa: PLC0415 - a command line reads this page before any data

    from stepscope.pages.short_names import readable  # noqa: PLC0415

    return readable(pl.DataFrame({"name": names}, schema={"name": pl.String}))["name"].to_list()


def _own_rank(pair: Pair, step: Row) -> Iterator[str]:
    """That one rank alone takes longer, for which the others wait."""
    rows = [row for row in rows_of(pair, "rank_differences") if row["own_difference_ns"] is not None]
    total = step["difference_ns"]
    if len(rows) < 3 or step["verdict"] in UNCERTAIN or total <= 0:
        return
    own = sorted(row["own_difference_ns"] for row in rows)
    if own[-1] >= OWN * total and own[len(own) // 2] <= OTHERS * total:
        rank = next(row["rank"] for row in rows if row["own_difference_ns"] == own[-1])
        yield (
            f"Of the ranks, {rank} takes most longer itself ({_signed(own[-1])} without communication); "
            f"most others do not ({_signed(own[len(own) // 2])}). Look at it alone with «--ranks» {rank}."
        )
