"""Verdicts as sentences, in English and Chinese, from the words of `words.py`."""

from __future__ import annotations

from stepscope.live.show.words import WORDS, Text
from stepscope.live.verdicts import Cause, Verdict
from stepscope.present import Language, duration, listed, printable
from stepscope.selection import describe_numbers

MOST_NAME = 60
"""Names of hosts and groups are shortened to this many characters."""
MOST_JOB = 29
"""The same of jobs in text, so that ranks, step and time stay visible beside it in 80 columns."""

_LONGER = Text("{ratio:.2f}x the normal time", "耗时为正常的 {ratio:.2f} 倍")
_COST = Text("{cost} more per step", "每步多 {cost}")
_SINCE = Text("since step {step:,}", "自第 {step:,} 步起")
_UNTIL = Text("from step {step:,} to {until:,}; over", "第 {step:,} 步至第 {until:,} 步；已结束")
_SURE = Text("{sure} sure", "置信度 {sure}")
_COMES_AND_GOES = Text("comes and goes", "时有时无")
_EVERYBODY = Text("All ranks", "所有 rank")
_SOMEBODY = Text("The job", "作业")


def who(verdict: Verdict, language: Language = "en") -> str:
    """The ranks or hosts that a verdict blames, to begin a sentence; safe to print."""
    ranks = describe_numbers(verdict.ranks)
    if verdict.hosts:
        names = listed([short_name(host) for host in verdict.hosts], "和" if language == "zh" else "and")
        noun = "主机" if language == "zh" else "Host" if len(verdict.hosts) == 1 else "Hosts"
        return f"{noun} {names}" + (f" (ranks {ranks})" if verdict.ranks else "")
    if not verdict.ranks:
        return (_EVERYBODY if verdict.cause is Cause.JOB else _SOMEBODY).of(language)
    if language == "zh":
        return f"Rank {ranks}"
    return f"{'Rank' if len(verdict.ranks) == 1 else 'Ranks'} {ranks}"


def is_many(verdict: Verdict) -> bool:
    """Whether a verdict blames several of what `who` names."""
    if verdict.hosts:
        return len(verdict.hosts) > 1
    return len(verdict.ranks) > 1 or (not verdict.ranks and verdict.cause is Cause.JOB)


def headline(verdict: Verdict, language: Language = "en") -> str:
    """Who is slow at what, and how much: one sentence without a full stop; safe to print.

    Examples:
        >>> headline(Verdict("k", Cause.DATA, [2], 7, 0, 1.5, 62_000_000, 0.98))
        'Rank 2 waits for data: 1.50x the normal time, 62.00 ms more per step'
    """
    words = WORDS[verdict.cause]
    does = (words.many if is_many(verdict) else words.one).of(language)
    said = f"{who(verdict, language)} {does}"
    figures = []
    if verdict.cause is not Cause.HANG:
        if verdict.ratio is not None:
            figures.append(_LONGER.of(language, ratio=verdict.ratio))
        if verdict.cost_ns is not None:
            figures.append(_COST.of(language, cost=duration(verdict.cost_ns)))
    if not figures:
        return said
    return f"{said}：{'，'.join(figures)}" if language == "zh" else f"{said}: {', '.join(figures)}"


def circumstances(verdict: Verdict, language: Language = "en") -> str:
    """Since when, whether it is over, and how sure; safe to print.

    Examples:
        >>> circumstances(Verdict("k", Cause.DATA, [2], 7, 0, 1.5, 62_000_000, 0.98))
        'since step 7; 98 % sure'
    """
    if verdict.until_step is not None:
        parts = [_UNTIL.of(language, step=verdict.since_step, until=verdict.until_step)]
    else:
        parts = [_SINCE.of(language, step=verdict.since_step)]
    if verdict.intermittent:
        parts.append(_COMES_AND_GOES.of(language))
    parts.append(_SURE.of(language, sure=surely(verdict.sureness, language)))
    return ("；" if language == "zh" else "; ").join(parts)


def surely(sureness: float, language: Language = "en") -> str:
    """A probability as text; never 100 %.

    Examples:
        >>> surely(0.5), surely(0.9999)
        ('50 %', 'over 99 %')
    """
    if sureness >= 0.995:
        return "超过 99 %" if language == "zh" else "over 99 %"
    return f"{sureness:.0%}".replace("%", " %")


def action(verdict: Verdict, framework: str = "", device: str = "", language: Language = "en") -> str:
    """What to do next, an imperative without a full stop; safe to print.

    Args:
        framework: Of the ranks to blame, as in their `Hello`; empty if unknown or mixed.
        device: Likewise.
    """
    words = WORDS[verdict.cause]
    choices = words.explained if verdict.explanation and words.explained is not None else words.action
    kind = "mindspore" if "mindspore" in framework.lower() else framework.lower() or None
    places = ((kind, device or None), (kind, None), (None, device or None), (None, None))
    text = next(choices[place] for place in places if place in choices)
    return text.of(language, ranks=describe_numbers(verdict.ranks) or "all")


def short_job(job: str) -> str:
    """The name of a job for a line of text: its begin and end, since launchers put what tells jobs apart at either.

    Examples:
        >>> short_job("default_task_id_b7ec0aac-cb64-4b91-8921-e73a483bbdae_localhost_44027")
        'default_task_id_...host_44027'
    """
    name = printable(job)
    return name if len(name) <= MOST_JOB else f"{name[:16]}...{name[-10:]}"


def short_name(name: str, most: int = MOST_NAME) -> str:
    """A name that another process sent: safe to print, and not too long.

    Examples:
        >>> short_name("a" * 9, 5), short_name("x\\x1b[2J")
        ('aa...', 'x\\\\x1b[2J')
    """
    text = printable(name[: most * 2])
    return text if len(text) <= most else f"{text[: most - 3]}..."
