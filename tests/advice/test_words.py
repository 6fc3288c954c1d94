"""Every text of every rule, in both languages, with one rank and several, of steps, iterations and recordings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, get_args

import pytest

from stepscope.advice import LANGUAGES, RULES, Language, messages
from stepscope.advice.finding import Finding, Per, Platform
from stepscope.advice.formatters import FORMATTERS
from stepscope.advice.messages import OPTIONAL, Field, Message, Text, fields_of, fill, pick, words_of, written
from stepscope.advice.rules.environment_words import OF_DEVICES as VARIABLES_OF_DEVICES
from stepscope.advice.rules.long_step import OF_DEVICES as LONG_OF_DEVICES
from stepscope.references import as_typed
from stepscope.report.verdict_words import SENTENCES
from tests.advice.examples import findings
from tests.advice.test_platforms import NOT_EVERYWHERE, OF_DEVICES, PLATFORMS, misplaced

TEXTS = ("summary", "short", "cause", "action", "basis")
ALL = [(rule, key) for rule in sorted(RULES) for key in RULES[rule].messages]
COUNTS = (1, 2, 3)

NAMES = {
    *("rank", "kernel", "Python", "Tensor", "Core", "Cell", "loss", "py-spy", "worker", "x", "map", "batch"),
    *(
        "PyTorch",
        "ROCm",
        "MindSpore",
        "MindInsight",
        "Insight",
        "GFLOP/s",
        "GFLOPs",
        "MindRecord",
        "DataLoader",
        "GeneratorDataset",
        "CUDA",
        "gloo",
        "torchair",
        "graph",
        "C",
        "msadvisor",
    ),
    *(
        "SDMA",
        "RDMA",
        "PFC",
        "ECN",
        "MB/s",
        "DDP",
        "FSDP",
        "ZeRO",
        "DeepSpeed",
        "Megatron",
        "NCCL",
        "RCCL",
        "HCCL",
        "GPU",
        "NPU",
        "all-reduce",
        "all-gather",
        "FullyShardedDataParallel",
    ),
    *("nn.DataParallel", "DataParallel", "DistributedDataParallel"),
    *(
        "CPU",
        "AI",
        "NUMA",
        "PCIe",
        "MHz",
        "ECC",
        "GB/s",
        "GB",
        "MB",
        "kB",
        "B",
        "ms",
        "us",
        "ns",
        "s",
        "None",
        "True",
        "json",
    ),
}
"""What a Chinese text may have in English letters: names, units, and what one types."""

TYPED = r"`[^`]*`|[A-Za-z_.]+(?:\([^（）()]*(?:\(\))?[^（）()]*\)|=[\w'.:-]+)|\w*_\w*|\w+\.\w[\w.]*|\.\w+\(\)|--\w+"
"""Code in a text: in backticks, calls, settings, names with underscores or dots."""


def message(rule: str, key: str) -> Message:
    return RULES[rule].messages[key]


def variants(one: Message) -> Iterator[Text]:
    """All texts of a message."""
    for name in TEXTS:
        text = getattr(one, name)
        if isinstance(text, Text):
            yield text
        elif text is not None:
            yield from text.values()


def names_of(text: Text, language: Language) -> set[str]:
    return {field.name for field in fields_of(text.of(language))} - {"per"}


def value_of(fields: list[Field], count: int) -> Any:
    """Something that all these formatters can write; `count` of it, where it is several."""
    formatters = {field.formatter for field in fields}
    if formatters & {"Ranks", "ranks", "steps"}:
        return list(range(0, 2 * count, 2))
    if formatters & {"names", "list"}:
        return [f"_{n}" for n in range(count)]
    if formatters & {"count", "one", "windows"}:
        return count
    if "when" in formatters:
        return {"period": None if count > 1 else 4, "steps": list(range(0, 20, 2)), "of": 40}
    if "functions" in formatters:
        return [{"name": "_f", "idle_ns": 10**6, "file": "_.x", "line": 3, "called_by": None}] * count
    return {"stage": "data processing", "percent": 0.16, "": 7}.get(next(iter(formatters)), 62_000_000)


def parameters_of(texts: list[Text], count: int) -> dict[str, Any]:
    """Values for all parameters of texts."""
    fields: dict[str, list[Field]] = {}
    for text, language in product(texts, LANGUAGES):
        for field in fields_of(text.of(language)):
            fields.setdefault(field.name, []).append(field)
    return {name: value_of(uses, count) for name, uses in fields.items() if name != "per"}


def check(text: str, language: Language) -> None:
    """That a text is one of its language, with all parameters written."""
    assert text.strip()
    assert not re.search(r"[{}\[\]|]|  |None\b(?! in|）)", text), text
    if language == "en":
        assert as_typed(text).isascii(), text
        return
    words = re.findall(r"[A-Za-z/-]*[A-Za-z][A-Za-z/-]*", re.sub(TYPED, "", text))
    assert not set(words) - NAMES, (set(words) - NAMES, text)


@pytest.mark.parametrize(("rule", "key"), ALL)
def test_every_text_is_written_in_both_languages_for_one_and_several_of_everything(rule: str, key: str) -> None:
    one = message(rule, key)
    for count, language, per in product(COUNTS, LANGUAGES, get_args(Per)):
        for text in variants(one):
            known = parameters_of([text], count)
            check(fill(text, known, language, per), language)
            required = {field.name for field in fields_of(OPTIONAL.sub("", text.of(language)))}
            without = fill(text, {name: known[name] if name in required else None for name in known}, language, per)
            assert text is one.basis or not without.endswith(("[", " ", "(")), without


@pytest.mark.parametrize(("rule", "key"), ALL)
def test_both_languages_name_the_same_parameters_by_formatters_that_exist(rule: str, key: str) -> None:
    for text in variants(message(rule, key)):
        assert names_of(text, "en") == names_of(text, "zh"), text
        for language in LANGUAGES:
            assert {field.formatter for field in fields_of(text.of(language))} - {""} <= FORMATTERS.keys()


@pytest.mark.parametrize("rule", sorted(RULES))
def test_rules_give_all_parameters_that_their_texts_name_and_no_others(rule: str) -> None:
    found = [one for platform in PLATFORMS for one in findings(rule, platform)]

    assert found
    for one in found:
        used = set().union(*(names_of(text, "en") for text in variants(message(rule, one.message))))
        assert set(one.parameters) == used, one.message


@pytest.mark.parametrize("rule", sorted(RULES))
def test_the_examples_use_every_message(rule: str) -> None:
    used = {one.message for platform in PLATFORMS for one in findings(rule, platform)}

    assert used == set(RULES[rule].messages) - UNUSED.get(rule, set())


UNUSED: Mapping[str, set[str]] = {
    "ai-cpu": {"other"},
    "idle-time": {"other/no function"},
    "pipeline-bottleneck": {
        f"{kind}/{place}"
        for kind in ("reader", "generator", "map", "batch", "shuffle", "single", "sender", "other")
        for place in ("last", "between", "waiting")
    },
}
"""Messages for which the examples have no case; tests of these rules do."""


@pytest.mark.parametrize(("rule", "key"), ALL)
def test_every_message_has_words_for_every_platform_and_none_of_another(rule: str, key: str) -> None:
    one = message(rule, key)
    for platform, language in product([Platform(), *PLATFORMS], LANGUAGES):
        texts = [pick(text, platform) for name in TEXTS if (text := getattr(one, name)) is not None]
        parameters = parameters_of(list(variants(one)), 2)
        if platform.device == "cpu" and "device" in parameters:
            parameters["device"] = None
        found = Finding(rule, key, parameters, 10**6, 0.1, 0, 10**7, platform=platform)
        words = words_of(found, one, language)

        assert all(vars(words).values()), platform
        if occurs(rule, key, platform):
            for text in texts:
                assert not misplaced(written(found, text, language), platform), platform


def occurs(rule: str, key: str, platform: Platform) -> bool:
    """Whether a rule can find this on a known platform."""
    known = {
        **{"idle-time": OF_DEVICES, "long-step": LONG_OF_DEVICES, "environment": VARIABLES_OF_DEVICES},
        "compile-time": ("launch",),
    }
    of_devices = known.get(rule, ())
    if platform == Platform() or (platform.device == "cpu" and key.partition("/")[0] in of_devices):
        return False
    return NOT_EVERYWHERE.get(rule, lambda _: True)(platform)


@pytest.mark.parametrize("key", sorted(SENTENCES))
def test_every_sentence_of_the_verdict_is_written_in_both_languages(key: str) -> None:
    text = SENTENCES[key]

    assert names_of(text, "en") == names_of(text, "zh")
    for count, language, per in product(COUNTS, LANGUAGES, get_args(Per)):
        known = {**parameters_of([text], count), "short": "7", "summary": "7", "cause": "7"}
        check(fill(text, known, language, per), language)


def test_every_formatter_is_used() -> None:
    texts = [text for rule, key in ALL for text in variants(message(rule, key))]
    texts += [*SENTENCES.values(), *(text for text in vars(messages).values() if isinstance(text, Text))]

    assert {field.formatter for text in texts for field in fields_of(text.en)} - {""} == set(FORMATTERS)


def test_accusing_rules_have_half_a_sentence_for_each_message() -> None:
    for rule in RULES.values():
        for one in rule.messages.values():
            assert (one.short is not None) == rule.accuses
