"""The results as tables."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from simulated_live.scoring import Score


def described(scores: list[Score]) -> list[str]:
    """Lines of text."""
    faulty = [one for one in scores if one.faults]
    healthy = [one for one in scores if not one.faults]
    lines: list[str] = []
    head = f"{'':34} {'jobs':>5} {'faults':>6} {'found':>6} {'seen':>6} {'wrong':>6} {'over':>7}"
    head += f" {'s p50':>6} {'s p90':>6} {'steps':>6}"
    for title, key in (("by family", "family"), ("by size", "magnitude")):
        lines += ["", title, head]
        names = sorted({getattr(one, key) for one in faulty})
        lines += [_line(name, [one for one in faulty if getattr(one, key) == name]) for name in names]
    if faulty:
        lines += [_line("all", faulty)]
        true, false = sum(one.true for one in faulty), sum(one.false for one in faulty)
        lines.append(f"precision {true / max(1, true + false):.4f} of {true + false} verdicts")
        lines += _calibration(faulty)
    if healthy:
        lines += ["", "healthy jobs"]
        for one in healthy:
            lines.append(f"{one.job:40} {one.ranks:5} ranks {one.hours:6.2f} h  {one.false:3} false verdicts")
        lines.append(
            f"{'all':40} {'':11} {sum(one.hours for one in healthy):6.2f} h  {sum(one.false for one in healthy):3}"
        )
    digests, cpu = sum(one.digests for one in scores), sum(one.cpu_s for one in scores)
    if digests:
        lines += ["", f"{cpu / digests * 1e6:.1f} us of a processor per digest, of {digests:,}"]
        big = max(scores, key=lambda one: one.ranks)
        lines.append(
            f"{big.ranks} ranks: {big.cpu_s / max(1, big.digests) * 1e6:.1f} us per digest, "
            f"{big.cpu_s / max(1e-9, big.hours * 3600):.3f} of a core"
        )
    return lines + _rules(faulty, healthy)


def _line(name: str, scores: list[Score]) -> str:
    faults, found, seen = (sum(getattr(one, key) for one in scores) for key in ("faults", "found", "seen"))
    wrong, ending, over = (sum(getattr(one, key) for one in scores) for key in ("false", "ending", "recovered"))
    seconds = sorted(delay for one in scores for delay in one.delays_s)
    steps = sorted(delay for one in scores for delay in one.delays_steps)
    ends = f"{over}/{ending}" if ending else ""
    shown = f"{name:34} {len(scores):5} {faults:6} {found:6} {seen:6} {wrong:6} {ends:>7}"
    if seconds:
        shown += f" {median(seconds):6.1f} {seconds[int(0.9 * (len(seconds) - 1))]:6.1f} {median(steps):6.0f}"
    return shown


def _calibration(scores: Iterable[Score]) -> list[str]:
    """How often verdicts of a sureness are right."""
    right = [value for one in scores for value in one.sure_true]
    wrong = [value for one in scores for value in one.sure_false]
    lines = []
    for low, high in ((0.0, 0.9), (0.9, 0.97), (0.97, 0.995), (0.995, 1.01)):
        good = sum(low <= value < high for value in right)
        bad = sum(low <= value < high for value in wrong)
        if good + bad:
            lines.append(f"sureness {low:.3f} to {min(high, 1):.3f}: {good / (good + bad):.3f} right of {good + bad}")
    return lines


def _rules(faulty: list[Score], healthy: list[Score]) -> list[str]:
    """What published rules do on the same streams, for faults that they can name: slow ranks."""
    shared = [one for one in faulty if one.baselines and one.family in COMPARED]
    if not shared:
        return []
    lines = ["", "beside published rules, of slow ranks (compute and data)"]
    lines.append(f"{'':24} {'found':>6} {'of':>5} {'precision':>10} {'steps':>6} {'false, healthy':>15}")
    faults = sum(one.faults for one in shared)
    true, false = sum(one.true for one in shared), sum(one.false for one in shared)
    steps = [delay for one in shared for delay in one.delays_steps]
    alarms = sum(one.false for one in healthy if one.baselines)
    lines.append(_rule("stepscope", sum(one.found for one in shared), faults, true, false, steps, alarms))
    for name in shared[0].baselines:
        rows = [one.baselines[name] for one in shared]
        alarms = sum(one.baselines[name][1] for one in healthy if one.baselines)
        delays = [delay for row in rows for delay in row[3]]
        found = sum(row[2] for row in rows)
        lines.append(_rule(name, found, faults, sum(r[0] for r in rows), sum(r[1] for r in rows), delays, alarms))
    return lines


def _rule(name: str, found: int, faults: int, true: int, false: int, steps: list[int], alarms: int) -> str:
    precision = true / max(1, true + false)
    shown = f"{median(steps):6.0f}" if steps else "      "
    return f"{name:24} {found:6} {faults:5} {precision:10.3f} {shown} {alarms:15}"


COMPARED = (
    "compute",
    "compute, 3D",
    "from the start",
    "host",
    "data",
    "several",
    "garbage",
    "intermittent",
    "recovering",
    "lengths known",
    "lengths alike",
    "lengths unknown",
)
"""Families of faults of single ranks that the rules were made for, or would have to name."""
