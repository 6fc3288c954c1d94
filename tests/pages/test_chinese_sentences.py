"""Sentences about answers and coded values in Chinese: figures stay, words do not."""

from __future__ import annotations

import re

import polars as pl
import pytest

from stepscope.pages.chinese.sentences import SENTENCES
from stepscope.pages.coded_values import in_words
from stepscope.pages.words import sentence
from stepscope.tables.base import Column

SPOKEN = {
    "The step takes the same time: 28.46 ms and 28.40 ms.": "每步耗时相同：28.46 ms 与 28.40 ms。",
    "The step is 1.52 times slower: 117.67 ms instead of 77.43 ms (+40.23 ms). This is beyond noise (6 and 6 steps): "
    "chance gives such a difference in 0.2% of cases.": (
        "每步变慢（1.52 倍）：117.67 ms，原为 77.43 ms（+40.23 ms）。这超出了噪声（6 步与 6 步）："
        "偶然出现这样差异的概率为 0.2%。"
    ),
    "The iteration is 9.6% faster: 104.14 ms instead of 114.14 ms (-10.00 ms). Too few steps to tell whether this is "
    "noise (3 and 3).": (
        "每步变快（9.6%）：104.14 ms，原为 114.14 ms（-10.00 ms）。步数太少，无法判断是否为噪声（3 步与 3 步）。"
    ),
    "By part: exposed communication -7.10 ms (waiting for others -4.44 ms, transmission -2.66 ms); idle +7.02 ms.": (
        "按组成部分：未掩盖的通信 -7.10 ms（等待其他 rank -4.44 ms，传输 -2.66 ms）；空闲 +7.02 ms。"
    ),
    "Calls of equal shapes are 1.40 times slower in a<b, c> and d.": "形状相同的调用变慢（1.40 倍）：a<b, c>、d。",
    "Own work of rank 2 (slow) takes 7.04 ms longer in a step than that of rank 7 (typical): idle +7.02 ms (dispatch "
    "+7.02 ms).": "每步自身的工作：rank 2（慢） 比 rank 7（典型） 长 7.04 ms：空闲 +7.02 ms（下发 +7.02 ms）。",
    "Own work of rank 2 takes 7.04 ms longer in a step than that of rank 7, which as a whole is within noise (3 and 3 "
    "steps): idle +7.02 ms.": (
        "每步自身的工作：rank 2 比 rank 7 长 7.04 ms（总体在噪声范围内，3 步与 3 步）：空闲 +7.02 ms。"
    ),
    "In that time rank 7 (typical) waits: its exposed communication takes 7.10 ms longer (waiting for others +4.44 "
    "ms), so that the step of both takes the same time: 28.46 ms and 28.40 ms.": (
        "在此期间 rank 7（典型） 在等待：其未掩盖的通信多 7.10 ms（等待其他 rank +4.44 ms），"
        "因此两者每步耗时相同：28.46 ms 与 28.40 ms。"
    ),
    "The step is 9.6% slower for steps 7-12 than for steps 1-6: 2.00 ms instead of 1.00 ms (+1.00 ms). This is beyond "
    "noise (6 and 6 steps).": (
        "与 第 1-6 步 相比，第 7-12 步 每步变慢（9.6%）：2.00 ms，原为 1.00 ms（+1.00 ms）。"
        "这超出了噪声（6 步与 6 步）。"
    ),
    "Kernels are uniformly 1.30 times slower for rank 6, whatever they compute: as by another clock, power limit or "
    "device, not by another program.": (
        "对 rank 6，所有 kernel 无论计算什么都同样变慢（1.30 倍）：像是时钟、功耗上限或设备不同，而不是程序不同。"
    ),
    "Of the base, step 1 does not count: a first one, far longer.": (
        "基准侧的第 1 步不计入：它是最初的步，远长于其他步。"
    ),
    "too few: all steps of one side are above those of the other, but a test needs at least 4 steps on each side, here "
    "are 3 and 3; these differences are shown untested.": (
        "步数太少：一侧的各步全部高于另一侧，但检验要求每侧至少 4 步，这里是 3 步与 3 步；这些差异未经检验。"
    ),
    "58 of 1392 pieces of device work (4%) take less time than their launch.": (
        "1392 个设备任务中有 58 个（4%）的耗时比主机下发它还短。"
    ),
    "base: the recording has no steps": "基准侧：记录中没有步",
    "rank 7: the recording has no steps": "rank 7侧：记录中没有步",
}


@pytest.mark.parametrize("english", SPOKEN)
def test_a_sentence_keeps_its_figures_and_names(english: str) -> None:
    assert sentence(english, "zh") == SPOKEN[english]
    assert sentence(english, "en") == english


def test_a_sentence_of_an_unknown_form_stays_english() -> None:
    assert sentence("Nothing like this.", "zh") == "Nothing like this."


def test_the_forms_take_only_groups_that_they_have() -> None:
    for form, chinese in SENTENCES:
        used = [int(a or b) for a, b in re.findall(r"\\(\d)|\{(\d)\}", chinese)]

        assert max(used, default=0) <= re.compile(form).groups, form


def test_words_of_coded_columns_are_chinese_and_names_of_operators_stay() -> None:
    rows = pl.DataFrame(
        {"kind": ["dispatch", "mine", None], "name": ["dispatch"] * 3, "part": ["- data_loading", "step", "idle"]},
    ).with_columns(differs=pl.Series([True, False, None]), unit=pl.Series(["vector", "link", "matrix"]))
    columns = [Column(name, "string", "") for name in ("kind", "name", "part", "differs")]
    columns.append(Column("unit", "string", "", values=("matrix", "vector", "link")))

    found = in_words(rows, columns, "zh").to_dict(as_series=False)

    assert found["kind"] == ["下发", "mine", None]
    assert found["name"] == ["dispatch"] * 3
    assert found["part"] == ["- 等待数据", "步", "空闲"]
    assert found["differs"] == ["是", "否", None]
    assert found["unit"] == ["向量", "链路", "矩阵"]
    assert in_words(rows, columns, "en") is rows


SPOKEN_ON_PAGES = {
    "no rank 99 in job. It has ranks 0-7": "job 中没有 rank 99，只有 rank 0-7",
    "--search zz: no row contains it. There are a, b and 27 more": (
        "--search zz：没有包含它的行。有 a, b 以及另外 27 个"
    ),
    "--host zz: there is no such host in job. There are node0": "--host zz：job 中没有这样的主机；有 node0",
    "The chain of step 12, the median (29.34 ms): rank 3 for 4.11 ms (3.66 ms computing, 350.0 us data loading and "
    "96.0 us other work); then rank 7 for 8.15 ms (7.39 ms computing and 766.6 us communication). The other 1.20 ms "
    "are shorter pieces in between.": (
        "中位步（第 12 步，29.34 ms）的链：rank 3 用 4.11 ms（计算 3.66 ms、等待数据 350.0 us、其他工作 96.0 us）；"
        "然后 rank 7 用 8.15 ms（计算 7.39 ms、通信 766.6 us）。其余 1.20 ms 为其间较短的各段。"
    ),
    "The bottleneck is data processing.": "瓶颈是数据处理。",
    "no kernel shorter than the limit was recorded": "没有记录短于上限的 kernel",
}


@pytest.mark.parametrize("english", SPOKEN_ON_PAGES)
def test_pages_and_errors_speak_chinese(english: str) -> None:
    assert sentence(english, "zh") == SPOKEN_ON_PAGES[english]


def test_words_that_are_typed_stay() -> None:
    rows = pl.DataFrame({"word": ["host", "link"], "kind": ["computing", "dispatch"]})
    columns = [Column(name, "string", "", values=("host", "link")) for name in rows.columns]

    assert in_words(rows, columns, "zh").to_dict(as_series=False) == {
        "word": ["host", "link"],
        "kind": ["计算", "下发"],
    }
