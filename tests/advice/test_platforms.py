"""Causes and actions fit the framework and device of the ranks that a finding is about."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from stepscope.advice import LANGUAGES, RULES, worded
from stepscope.advice.finding import Platform, platform_of
from stepscope.advice.rules.idle_gaps import DEPENDENCY
from stepscope.advice.rules.idle_time import CAUSES, OF_DEVICES
from stepscope.tables import RANKS
from tests.advice.examples import findings

FRAMEWORKS = ("pytorch", "mindspore")
DEVICES = ("cpu", "cuda", "rocm", "npu")
PLATFORMS = [Platform(framework, device) for framework in FRAMEWORKS for device in DEVICES]

ONLY_ON: dict[str, Callable[[Platform], bool]] = {
    r"(?<!py)torch(?!vision)|DataLoader|\bnum_workers|prefetch_factor|\.item\(\)|\.detach|non_blocking|pin_memory": (
        lambda p: p.framework == "pytorch"
    ),
    r"(?i)mindspore|mindrecord|num_parallel_workers|prefetch_size|\bsink|\bsunk|asnumpy|data_process|MS_ALLOC": (
        lambda p: p.framework == "mindspore"
    ),
    r"PYTORCH_CUDA": lambda p: p == Platform("pytorch", "cuda"),
    r"PYTORCH_HIP": lambda p: p == Platform("pytorch", "rocm"),
    r"PYTORCH_NPU": lambda p: p == Platform("pytorch", "npu"),
    r"MS_ALLOC|AI CPU|Ascend": lambda p: p.device == "npu",
    r"CUDA(?!_)": lambda p: p.device == "cuda",
    r"(?i)\bdevices?\b|kernel|GPU|PCIe|pinned|\bpin\b|power cap|launch|\bstreams?\b|synchronis|lane width": (
        lambda p: p.device != "cpu"
    ),
}
"""Words, and where they belong."""

NOT_EVERYWHERE: dict[str, Callable[[Platform], bool]] = {
    "pipeline-bottleneck": lambda p: p.framework == "mindspore",
    "ai-cpu": lambda p: p.device == "npu",
    **dict.fromkeys(
        ("low-clock", "block-dim", "dynamic-shape", "operator-bound", "operator-efficiency"),
        lambda p: p.device == "npu",
    ),
    "memory-copies": lambda p: p.device != "cpu",
    "replaceable-operators": lambda p: p.framework == "pytorch",
    "host-stall": lambda p: p.device != "cpu",
    "fusible-operators": lambda p: p.device != "cpu",
    "sync-batch-norm": lambda p: p.device != "cpu",
    "launch-wait": lambda p: p.device != "cpu",
    "memory-calls": lambda p: p.device != "cpu",
    "cpu-busy": lambda p: p.device != "cpu",
    "tensor-cores": lambda p: p.device == "cuda",
    "clock-throttling": lambda p: p.device == "cuda",
    "low-occupancy": lambda p: p.device in ("cuda", "rocm"),
    "graph-breaks": lambda p: p.framework == "pytorch",
    "recompile-limit": lambda p: p.framework == "pytorch",
    "host-synchronisation": lambda p: p.framework == "pytorch" and p.device in ("cuda", "rocm"),
}
"""Rules that have nothing to report on some platforms: their data is never recorded there, or means nothing."""


def misplaced(text: str, platform: Platform) -> list[str]:
    """Words of a text that do not belong on a platform."""
    return [
        found[0]
        for words, fits in ONLY_ON.items()
        if not fits(platform) and (found := re.search(words, text)) is not None
    ]


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
@pytest.mark.parametrize("rule", sorted(RULES))
def test_no_rule_uses_words_of_another_framework_or_device(rule: str, platform: Platform) -> None:
    told = findings(rule, platform) if NOT_EVERYWHERE.get(rule, lambda _: True)(platform) else []

    for finding in told:
        for language in LANGUAGES:
            words = worded(finding, language)
            for text in (words.summary, words.cause, words.action):
                assert not misplaced(text, platform), text
    assert told or rule in NOT_EVERYWHERE


@pytest.mark.parametrize("platform", PLATFORMS, ids=str)
def test_rules_are_silent_where_their_subject_does_not_exist(platform: Platform) -> None:
    for rule in ("ai-cpu", "memory-copies", "cpu-busy"):
        assert bool(findings(rule, platform)) == NOT_EVERYWHERE[rule](platform)
    causes = {finding.evidence["cause"] for finding in findings("idle-time", platform)}
    assert causes == {*CAUSES, DEPENDENCY} - ({*OF_DEVICES} if platform.device == "cpu" else set())


def test_ranks_that_differ_have_no_platform_in_common() -> None:
    ranks = RANKS.frame(rank=[0, 1], framework=["pytorch"] * 2, device_kind=["cuda", "cpu"]).lazy()

    assert platform_of(ranks) == Platform("pytorch", None)
    assert platform_of(ranks, [1]) == Platform("pytorch", "cpu")
    assert platform_of(None) == Platform()
