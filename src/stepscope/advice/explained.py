"""What a rule does, needs, decides by and says, as data and as lines of text: for the terminal, programs and docs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepscope import plugins
from stepscope.advice.limit_sets import limit_sets, rule_table
from stepscope.advice.messages import Choices, Text
from stepscope.advice.placeholders import shown
from stepscope.advice.registry import RULES, Claim, Rule
from stepscope.analysis import ANALYSES
from stepscope.analysis.parameters import parameters_of
from stepscope.analysis.registry import needed
from stepscope.errors import StepscopeError, close_matches
from stepscope.present import Language
from stepscope.sources.registry import all_sources
from stepscope.tables import ISSUES, RANKS, TABLES

OURS = "stepscope."
"""How names of modules with our rules begin."""

ALWAYS = (RANKS.name, ISSUES.name)
"""Tables that every run has."""

_FRAMEWORKS = {"pytorch": "PyTorch", "mindspore": "MindSpore"}
_DEVICES = {"cpu": "CPU", "cuda": "CUDA", "rocm": "ROCm", "npu": "Ascend"}
_TITLES = {"summary": "", "cause": "Why", "action": "Fix", "basis": "Range of the saving"}
"""Parts of a message, and what they are called."""

_LONG = 80
"""Characters from which a beginning that texts share is told once."""


@dataclass(frozen=True)
class Need:
    """A table or analysis that a rule is given.

    Args:
        name: Its name.
        kind: `table` or `analysis`.
        required: Whether the rule finds nothing without it.
        meaning: What a row of the table is, or what the analysis answers.
        missing_if: Why an analysis has no answer, if it says so; why tables are missing: `Explanation.missing`.
        rests_on: Tables without which the analysis has no answer.
    """

    name: str
    kind: str
    required: bool
    meaning: str
    missing_if: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """What a rule does, needs, decides by and says.

    Args:
        rule: Its name.
        dimension: What part of training it is about.
        does: What it does, as its author states it, in English.
        computed: How it decides, and what its saving is computed from; empty if its author does not say.
        asked_of: Whether it is asked about the whole job, and what follows from its findings in the verdict.
        needs: What it is given.
        platforms: Frameworks and devices for which it has words of their own.
        limits: Name, value, unit and source of each limit, whose it is, and whether and from what it was changed.
        limited: Further analyses behind what it is given that decide by limits of their own.
        messages: Of each message the texts in one language: general ones, and by platform.
        claim: Which time it claims.
        explains: Findings that follow from its findings.
        explained_by: Rules whose findings its findings may follow from.
        shows: Analyses whose rows are its evidence.
        missing: Of each table that it, or an analysis that it needs, cannot do without: why a recording may lack it.
        documented: Where more is written.
    """

    rule: str
    dimension: str
    does: str
    computed: str
    asked_of: str
    needs: tuple[Need, ...]
    platforms: tuple[str, ...]
    limits: tuple[dict[str, Any], ...]
    limited: tuple[str, ...]
    messages: tuple[dict[str, Any], ...]
    claim: str
    explains: tuple[str, ...]
    explained_by: tuple[str, ...]
    shows: tuple[str, ...]
    missing: dict[str, tuple[str, ...]]
    documented: tuple[str, ...]


def explained(name: str, language: Language = "en", limits: Mapping[str, Any] | None = None) -> Explanation:
    """Explain a rule.

    Args:
        name: The rule.
        language: The language of its texts.
        limits: Sets of limits that replace the defaults.

    Raises:
        StepscopeError: If there is no rule of this name; the message suggests close matches.
    """
    plugins.install()
    if name not in RULES:
        raise StepscopeError(f"there is no rule {name!r}. {close_matches(name, RULES)}")
    rule = RULES[name]
    needs = tuple(_needs(rule))
    tables = sorted({table for need in needs for table in (*need.rests_on, *_if_table(need))})
    return Explanation(
        rule=name,
        dimension=rule.dimension,
        does=_in_a_line(inspect.getdoc(rule.function) or ""),
        computed="" if rule.computed is None else _text(rule.computed, language),
        asked_of=_asked_of(rule),
        needs=needs,
        platforms=_platforms(rule),
        limits=(shown_limits := tuple(_limits(name, limits))),
        limited=_limited(needs, {row["limits_of"] for row in shown_limits}),
        messages=tuple(_message(key, vars(message), language) for key, message in rule.messages.items()),
        claim=_claim(rule.claim),
        explains=rule.explains,
        explained_by=tuple(sorted(other for other, one in RULES.items() if _names(one.explains, name))),
        shows=rule.shows,
        missing={table: reasons for table in tables if (reasons := why_missing(table))},
        documented=_documented(rule),
    )


def _in_a_line(text: str) -> str:
    return " ".join(text.split())


def _text(text: Text, language: Language) -> str:
    return text.of(language) or text.en


def _names(explains: tuple[str, ...], name: str) -> bool:
    return any(one.partition(":")[0] == name for one in explains)


def _asked_of(rule: Rule) -> str:
    said = ["It is asked about the whole job, also if ranks are selected." if rule.whole_job else ""]
    said.append("It accuses: the verdict names its findings in any case." if rule.accuses else "")
    said.append("Its findings come before all others: they are about what stops the job." if rule.urgent else "")
    return " ".join(filter(None, said))


def _needs(rule: Rule) -> Iterator[Need]:
    needs = parameters_of(f"rule {rule.name}", rule.function, ANALYSES).needs
    for name, required in sorted(needs.items(), key=lambda need: (not need[1], need[0])):
        if name in TABLES:
            meaning = _in_a_line(TABLES[name].doc)
            yield Need(name, "table", required, meaning)
        else:
            one = ANALYSES[name]
            meaning = (inspect.getdoc(one.function) or "").split("\n\n")[0]
            reasons = (one.nothing,) if one.nothing else ()
            yield Need(name, "analysis", required, _in_a_line(meaning), reasons, _rests_on(name))


def _if_table(need: Need) -> tuple[str, ...]:
    return (need.name,) if need.kind == "table" and need.name not in ALWAYS else ()


def why_missing(table: str) -> tuple[str, ...]:
    """The usual reasons of the readers why they have no such table."""
    said = {source.name: source.reasons[table] for source in all_sources() if table in source.reasons}
    by_reason: dict[str, list[str]] = {}
    for source, reason in said.items():
        by_reason.setdefault(reason, []).append(source)
    return tuple(f"{reason} ({', '.join(sources)})" for reason, sources in by_reason.items())


def _rests_on(analysis: str) -> tuple[str, ...]:
    """The tables that an analysis, and those that it cannot do without, cannot do without."""
    found = set[str]()
    for name, required in needed(analysis).needs.items():
        if required:
            found.update([name] if name in TABLES else _rests_on(name))
    return tuple(sorted(found - set(ALWAYS)))


def _platforms(rule: Rule) -> tuple[str, ...]:
    texts = (text for message in rule.messages.values() for text in vars(message).values())
    places = {place for text in texts if isinstance(text, Mapping) for place in text}
    return tuple(sorted(named_platform(*place) for place in places - {(None, None)}))


def named_platform(framework: str | None, device: str | None) -> str:
    """A framework and a kind of device as people call them.

    Examples:
        >>> named_platform("pytorch", "npu"), named_platform(None, "cpu"), named_platform(None, None)
        ('PyTorch on Ascend', 'CPU', 'all others')
    """
    if framework is None and device is None:
        return "all others"
    words = [_FRAMEWORKS.get(framework or "", framework), _DEVICES.get(device or "", device)]
    return " on ".join(word for word in words if word)


def _limits(name: str, changed: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    usual = {
        (row["limits_of"], row["limit"]): row["value"]
        for row in rule_table().drop_nulls("limits_of").iter_rows(named=True)
    }
    for row in rule_table(changed).filter(rule=name).drop_nulls("limits_of").iter_rows(named=True):
        default = usual[(row["limits_of"], row["limit"])]
        known = {key: row[key] for key in ("limits_of", "limit", "value", "unit", "source")}
        yield {**known, "default": default, "overridden": row["value"] != default}


def _limited(needs: Sequence[Need], told: set[str]) -> tuple[str, ...]:
    """Analyses with limits on which what a rule is given depends, without those whose limits are told."""
    behind = {one.name for need in needs if need.kind == "analysis" for one in ANALYSES[need.name].closure}
    return tuple(sorted(behind & limit_sets().keys() - told))


def _message(key: str, texts: Mapping[str, Text | Choices | None], language: Language) -> dict[str, Any]:
    """A message: each text, general or by platform, with placeholders for its parameters."""
    found: dict[str, Any] = {"message": key}
    for part in _TITLES:
        text = texts[part]
        if text is None:
            found[part] = None
        elif isinstance(text, Text):
            found[part] = shown(text, language)
        else:
            found[part] = _by_platform(text, language)
    return found


def _by_platform(texts: Choices, language: Language) -> str | dict[str, str]:
    """Texts by platform, without the platform if there is only one."""
    found = {named_platform(*place): shown(one, language) for place, one in texts.items()}
    return found if len(found) > 1 else next(iter(found.values()))


def _claim(claim: Claim | None) -> str:
    if claim is None:
        return "No other rule is about the time that it reports, so nothing is taken from its savings."
    time = f"the kind in its evidence `{claim.time_in}`" if claim.time_in else f"`{claim.time}`"
    less = [f"`{one}`" for one in claim.yields] + (["its own kind"] if claim.own else [])
    yields = f", less what rules of earlier turns claim of {', '.join(less)} on the same ranks" if less else ""
    return f"Time of {time}, in turn {int(claim.turn)} ({claim.turn.name.lower().replace('_', ' ')}){yields}."


def _documented(rule: Rule) -> tuple[str, ...]:
    module = rule.function.__module__
    ours = f"docs/rules.md#{rule.name}" if module.startswith(OURS) else f"the module {module}, which is not ours"
    return (ours, *(f"docs/analyses.md#{one}" for one in rule.shows))


def sections(known: Explanation, *, tables: bool = True) -> Iterator[tuple[str, list[str]]]:
    """The explanation as headed lines, the same in the terminal and in docs/rules.md.

    A line that begins with a dash is one of a list, one that begins with two spaces belongs to the line before it.

    Args:
        known: The explanation.
        tables: Also say why tables may be missing.
    """
    yield "What it does", [known.does, *filter(None, [known.asked_of])]
    yield "How it is computed", [known.computed or "Its author does not say."]
    yield "What it needs", [line for need in known.needs for line in _need_lines(need)] or ["- nothing"]
    if tables and known.missing:
        yield "Why tables may be missing", list(missing_lines(known.missing))
    words = ", ".join(known.platforms) or "the same words fit every framework and device"
    yield "Platforms with words of their own", [words]
    behind = (
        f"Behind what it is given, limits of {_listed(known.limited)} decide: see `stepscope rules list --with-limits`."
    )
    own = [_limit_line(row) for row in known.limits] or ["none of its own"]
    yield "Limits", [*own, *([behind] if known.limited else [])]
    yield "Messages", list(_message_lines(known.messages))
    yield "Time that it claims", [known.claim]
    if known.explains:
        yield "Explains", [_listed(one.replace(":", ", ") for one in known.explains)]
    if known.explained_by:
        yield "May follow from", [_listed(known.explained_by)]
    yield "Evidence and documentation", [_listed(known.shows) or "-", f"See {', '.join(known.documented)}"]


def _listed(names: Any) -> str:
    return "; ".join(f"`{name}`" for name in names)


def _need_lines(need: Need) -> Iterator[str]:
    yield f"- {need.kind} `{need.name}` ({'required' if need.required else 'used if present'}): {need.meaning}"
    if need.missing_if:
        yield f"  Missing if: {'; '.join(need.missing_if)}"
    if need.rests_on:
        yield f"  Rests on tables: {', '.join(need.rests_on)}"


def missing_lines(missing: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """A line for each table with the reasons why it may be missing."""
    for table, reasons in missing.items():
        yield f"- `{table}`: {'; '.join(reasons)}"


def _limit_line(row: Mapping[str, Any]) -> str:
    changed = f" (overridden, default {_figure(row['default'])})" if row["overridden"] else ""
    value = f"{_figure(row['value'])}{changed} {row['unit']}"
    return f"- `{row['limits_of']}.{row['limit']}` = {value}; source: {row['source']}"


def _figure(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if value.is_integer() else str(value)


def _message_lines(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The messages; a text, or a long beginning of it, that several have is only in the first of them."""
    first: dict[str, str] = {}
    begun: dict[str, list[tuple[str, str]]] = {}
    for message in messages:
        key = message["message"]
        for part, title in _TITLES.items():
            lead = f"- `{key}`: " if part == "summary" else f"  {title}: "
            found = message[part] or {}
            texts = found if isinstance(found, Mapping) else {"": found}
            places = [f"({place}) " if place else "" for place in texts]
            known = [
                first.setdefault(f"{part} {place}{text}", key)
                for place, text in zip(places, texts.values(), strict=True)
            ]
            if known and known[0] != key and len(set(known)) == 1:
                yield f"{lead}as `{known[0]}`"
                continue
            for place, text, before in zip(places, texts.values(), known, strict=True):
                told = _continued(text, begun.setdefault(part, [])) if before == key else f"as `{before}`"
                yield f"{lead}{place}{told}"
                lead = "  " if part == "summary" else lead
            begun.setdefault(part, []).extend((key, text) for text in texts.values())


def _continued(text: str, earlier: Sequence[tuple[str, str]]) -> str:
    """A text without the beginning that it shares with that of an earlier message, if that is long."""
    other, cut = max(((key, _shared(text, one)) for key, one in earlier), key=lambda one: one[1], default=("", 0))
    return text if cut < _LONG else f"as `{other}`, then: {text[cut:].strip()}"


def _shared(one: str, other: str) -> int:
    """How long the beginning is that two texts share, up to the end of an optional part."""
    length = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    return one[:length].rfind("]") + 1
