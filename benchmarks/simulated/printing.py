"""The table of the benchmark, and whether its aims are met."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from simulated.scoring import Score

HEADINGS = (
    "jobs",
    "loss",
    "named",
    "part",
    "kind",
    "why",
    "right",
    "wrong",
    "high",
    "med",
    "worst",
    "sum",
    "over",
    "s",
)
WIDTHS = (4, 6, 7, 4, 7, 5, 7, 5, 4, 6, 6, 5, 6, 4)
LEGEND = """\
loss: share of the step, median. named: causes of at least 2 % that are named exactly. part: only some of the ranks, or
others with them. kind: of those named. why: those of which the recorded cause is quoted. right: accusations of exactly
what is at fault. wrong: accusations of someone else. high: jobs with a finding of high severity. med, worst: error of
the saving of those named. sum: all accusations' savings over the loss, worst job. over: accusations' savings beyond the
loss, share of the step, worst. s: processor time of a job."""


def table(scores: Sequence[Score], before: Sequence[Sequence[Score]] = (), names: Sequence[str] = ()) -> list[str]:
    """Lines: a row for each kind of fault, results of other trees below it, all faults, and the aims."""
    families = list(dict.fromkeys(score.family for score in scores))
    lines = [_line("", HEADINGS)]
    for family in families:
        lines += _rows(family, lambda score, family=family: score.family == family, scores, before, names)  # type: ignore[misc]
    lines += _rows("ALL FAULTS", lambda score: bool(score.truth), scores, before, names)
    lines += _rows("ALL HEALTHY", lambda score: not score.truth, scores, before, names)
    lines += ["", LEGEND, "", "aims"]
    for number, of_tree in enumerate((scores, *before)):
        lines += [f"  {names[number - 1]}:"] if number else []
        lines += aims(of_tree)
    if failures := sorted({f"{score.family}: {score.failure}" for score in scores if score.failure}):
        lines += ["", "failures", *(f"  {failure}" for failure in failures)]
    return lines


def _rows(
    title: str,
    belongs: Callable[[Score], bool],
    scores: Sequence[Score],
    before: Sequence[Sequence[Score]],
    names: Sequence[str],
) -> list[str]:
    rows = [_line(title, _cells([score for score in scores if belongs(score)]))]
    for name, of_tree in zip(names, before, strict=True):
        if others := [score for score in of_tree if belongs(score)]:
            rows.append(_line(f"  {name}"[:36], _cells(others)))
    return rows if any(belongs(score) for score in scores) else []


def _line(title: str, cells: Iterable[str]) -> str:
    return f"{title:<36}" + "".join(f" {cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


def _cells(scores: Sequence[Score]) -> list[str]:
    errors = [score.error for score in scores if score.error is not None]
    sums = [score.accused_ns / score.loss_ns for score in scores if _is_material(score)]
    material, named = sum(score.material for score in scores), sum(score.named for score in scores)
    accusations, reasons = sum(score.accusations for score in scores), sum(score.reasons for score in scores)
    over = max((score.accused_ns - score.loss_ns) / score.step_ns for score in scores) if scores else 0.0
    return [
        str(len(scores)),
        _percent(median(score.loss_share for score in scores)) if scores else "",
        f"{named}/{material}" if material else "",
        str(sum(score.partly for score in scores) or ""),
        f"{sum(score.kind_right for score in scores)}/{named}" if named else "",
        f"{sum(score.reasons_right for score in scores)}/{reasons}" if reasons else "",
        f"{sum(score.right for score in scores)}/{accusations}" if accusations else "",
        str(sum(score.wrong for score in scores) or ""),
        str(sum(map(is_high, scores)) or ""),
        _percent(median(errors)) if errors else "",
        _percent(max(errors)) if errors else "",
        f"{max(sums):.2f}" if sums else "",
        _percent(over) if over > 0.0005 else "",
        f"{sum(score.seconds for score in scores) / max(len(scores), 1):.1f}",
    ]


OF_HOSTS = ("idle-time", "host-stall")
"""Rules about devices that wait for their hosts."""


def _percent(share: float) -> str:
    return f"{share:.1%}" if abs(share) < 1 else f"{share:.0%}"


def is_high(score: Score) -> bool:
    """Whether a finding is of high severity; that all devices wait for their hosts, or that these stop, is true where
    hosts bound a job."""
    is_true = score.job.startswith("host-bound") or score.family.startswith("replay")
    high = [claim for claim in score.claims if claim["severity"] == "high"]
    of_all = [claim for claim in high if claim["rule"] in OF_HOSTS and len(claim["ranks"]) in (0, score.ranks)]
    return bool(high) and not (is_true and len(of_all) == len(high))


def _is_material(score: Score) -> bool:
    return bool(score.truth) and score.material > 0


def aims(scores: Sequence[Score]) -> list[str]:
    """Each aim, what was reached, and whether that is enough."""
    faulty = [score for score in scores if _is_material(score)]
    weak = [score for score in faulty if "x1.1" in score.family]
    strong = [score for score in faulty if score not in weak]
    healthy = [score for score in scores if not score.truth]
    errors = [score.error for score in faulty if score.error is not None]
    rows: list[tuple[str, float | None, float, bool]] = []
    for title, group, limit in (("x1.3 and more", strong, 0.99), ("x1.1", weak, 0.95)):
        material = sum(score.material for score in group)
        accused = sum(score.accusations for score in group)
        rows.append((f"recall of the unit, {title}", _ratio(sum(s.named for s in group), material), limit, True))
        rows.append((f"precision of the unit, {title}", _ratio(sum(s.right for s in group), accused), limit, True))
    named = sum(score.named for score in faulty)
    rows.append(("kind", _ratio(sum(score.kind_right for score in faulty), named), 0.98, True))
    rows.append(("healthy jobs with a high finding", float(sum(map(is_high, healthy))) if healthy else None, 0, False))
    rows.append(
        ("healthy jobs that accuse", float(sum(s.accusations > 0 for s in healthy)) if healthy else None, 0, False)
    )
    rows.append(("error of the saving, median", median(errors) if errors else None, 0.03, False))
    rows.append(("error of the saving, worst", max(errors, default=None), 0.25, False))
    sums = [score.accused_ns / score.loss_ns for score in faulty]
    rows.append(("sum of savings over the truth, worst", max(sums, default=None), 1.05, False))
    over = [(score.accused_ns - score.loss_ns) / score.step_ns for score in scores]
    rows.append(("claimed beyond the truth, share of a step", max(over, default=None), 0.02, False))
    within = [score.within for score in faulty if score.within is not None]
    rows.append(("savings whose range holds the truth", _ratio(sum(within), len(within)), 0.9, True))
    reasons = sum(score.reasons for score in faulty)
    rows.append(("recorded cause quoted", _ratio(sum(score.reasons_right for score in faulty), reasons), 0.98, True))
    return [_aim(*row) for row in rows]


def _aim(title: str, value: float | None, limit: float, is_least: bool) -> str:
    bound = f"{'at least' if is_least else 'at most'} {limit}"
    if value is None:
        return f"  {title:<42} {'none':>8}  {bound}"
    is_met = value >= limit if is_least else value <= limit
    return f"  {title:<42} {value:>8.3f}  {bound:<14} {'met' if is_met else 'NOT MET'}"


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def described(score: Score) -> str:
    """One job: its truth and what was said of it."""
    lines = [
        f"{score.family} [{score.job}, {score.ranks} ranks x {score.steps} steps of {score.step_ns / 1e6:.2f} ms] "
        f"loss {score.loss_ns / 1e6:.3f} ms, {score.loss_share:.1%}"
    ]
    for truth in score.truth:
        who = f"{truth['kind']:<20} {truth['unit']} {list(truth['ranks'])}"
        lines.append(f"    truth  {who}, alone {truth['alone_ns'] / 1e6:.3f} ms")
    for claim in score.claims:
        accused = list(claim["ranks"]) or "all"
        low, saving, high = (claim[f"{name}_ns"] / 1e6 for name in ("low", "saving", "high"))
        lines.append(
            f"    {'ACCUSES' if claim['accuses'] else 'says   '} {claim['rule']}: {'/'.join(claim['kinds'])} "
            f"{accused}, {saving:.3f} ms [{low:.3f} to {high:.3f}], {claim['severity']}"
        )
    return "\n".join(lines)
