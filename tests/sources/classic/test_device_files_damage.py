"""Damage in one file of a classic profile is named, and costs nothing but what that file alone says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from device_files import CONV, NAMES, Read, whole_profile, write

LISTS = (
    ("AI_CORE", "type"),
    ("AI_CORE", "operator"),
    ("AI_CPU", "operator"),
    ("PYNATIVE", "type"),
    ("PYNATIVE", "operator"),
    ("GPU", "type"),
    ("GPU", "operator"),
    ("CUDA", "activity"),
)
POINTS = ("forward_start_operator", "backward_end_operator")
COSTS: dict[str, set[str]] = {
    "step_trace": {"steps", "collectives", "kernels", "step_totals"},
    "step_points": {"stated points"},
    "cluster_steps": {"step_totals"},
    "device_types": {"AI_CORE type"},
    "device_operators": {"AI_CORE operator"},
    "framework": {"AI_CORE operator"},
    "flops": {"AI_CORE operator"},
    "ai_cpu": {"AI_CPU operator"},
    "pynative_types": {"PYNATIVE type", "PYNATIVE operator"},
    "pynative_operators": {"PYNATIVE operator"},
    "gpu_types": {"GPU type"},
    "gpu_operators": {"GPU operator"},
    "gpu_activities": {"CUDA activity"},
    "timeline": {"kernels", "steps"},
    "timeline_display": {"kernels", "steps", "stated timeline"},
    "timeline_summary": {"stated timeline"},
    "flops_summary": {"stated flops"},
    "flops_scope": {"flop_scopes"},
}
"""Kind of file to what may be lost with it; steps with a timeline, for they say where kernels were recorded."""
NUMBERS = {
    "step_trace": "1000000,",
    "step_points": f'"{CONV}"',
    "cluster_steps": "1.7,",
    "device_types": "0.9,",
    "device_operators": "0.3,",
    "framework": ",32,",
    "flops": "600.0,",
    "ai_cpu": ",0.07,",
    "pynative_types": "0.4,",
    "pynative_operators": ",0.1,",
    "gpu_types": "800.0,",
    "gpu_operators": "800.0,",
    "gpu_activities": "700.5,",
    "timeline": ",10200.0,",
    "timeline_display": '"ts": 10200.0',
    "timeline_summary": "1.5",
    "flops_summary": "800.0",
    "flops_scope": "600.0",
}
"""Kind of file to a number in it that a word takes the place of."""


def empty(_kind: str, _text: str) -> str:
    return ""


def cut(_kind: str, text: str) -> str:
    return text[: len(text) * 7 // 10]


def other_header(kind: str, text: str) -> str:
    if kind in ("timeline_display", "step_points", "timeline_summary", "flops_summary", "flops_scope"):
        return '{"something": {"else": 1}}' if kind != "timeline_summary" else '{"total_time": "much"}'
    first, _, rest = text.partition("\n")
    return ",".join(f"column{at}" for at, _ in enumerate(first.split(","))) + "\n" + rest


def text_for_number(kind: str, text: str) -> str:
    word = NUMBERS[kind]
    assert word in text
    if kind in ("timeline_display", "step_points", "timeline_summary", "flops_summary", "flops_scope"):
        return text.replace(
            word, '"ts": "many"' if kind == "timeline_display" else "7" if kind == "step_points" else '"many"', 1
        )
    return text.replace(word, word.replace(word.strip(","), "many"), 1)


DAMAGES: tuple[Callable[[str, str], str], ...] = (empty, cut, other_header, text_for_number)


def parts(read: Read) -> dict[str, list[tuple[object, ...]]]:
    """What the profile says, in pieces."""
    pieces = {name: read.table(name) for name in ("steps", "collectives", "kernels", "step_totals", "flop_scopes")}
    pieces |= {f"{unit} {level}": read.totals(unit, level) for unit, level in LISTS}
    stated = read.stated()
    told = {name: sorted(frame.rows(), key=str) for name, frame in pieces.items()}
    told["stated points"] = [(name, stated.get(name)) for name in POINTS]
    told["stated timeline"] = [pair for pair in sorted(stated.items()) if pair[0].startswith("timeline")]
    told["stated flops"] = [pair for pair in sorted(stated.items()) if "flops" in pair[0]]
    return told


@cache
def healthy(*without: str) -> dict[str, list[tuple[object, ...]]]:
    """What an undamaged profile says."""
    with TemporaryDirectory() as folder:
        texts = {kind: text for kind, text in whole_profile().items() if kind not in without}
        read = Read(write(Path(folder), **texts))
    assert not read.told("error") + read.told("warning")
    return parts(read)


def without(kind: str) -> tuple[str, ...]:
    """Files that hide another one: of kernels and timeline only one is read."""
    return ("timeline",) if kind == "timeline_display" else ()


def test_a_whole_profile_says_all_and_raises_no_doubt(tmp_path: Path) -> None:
    read = Read(write(tmp_path, **whole_profile()))

    assert read.told("error") == read.told("warning") == []
    assert all(parts(read).values())


@pytest.mark.parametrize("kind", NAMES)
def test_a_missing_file_costs_only_what_it_says(tmp_path: Path, kind: str) -> None:
    texts = {other: text for other, text in whole_profile().items() if other not in (kind, *without(kind))}

    read = Read(write(tmp_path, **texts))

    expected = healthy(*without(kind))
    assert {name: rows for name, rows in parts(read).items() if name not in COSTS[kind]} == {
        name: rows for name, rows in expected.items() if name not in COSTS[kind]
    }
    assert read.told("error") == []


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", NAMES)
def test_a_damaged_file_is_named_and_costs_only_what_it_says(
    tmp_path: Path, kind: str, damage: Callable[[str, str], str]
) -> None:
    texts = {other: text for other, text in whole_profile().items() if other not in without(kind)}
    texts[kind] = damage(kind, texts[kind])

    read = Read(write(tmp_path, **texts))

    expected = healthy(*without(kind))
    assert {name: rows for name, rows in parts(read).items() if name not in COSTS[kind]} == {
        name: rows for name, rows in expected.items() if name not in COSTS[kind]
    }
    told = read.told("error") + read.told("warning")
    assert NAMES[kind] in {file for file, _ in told}
    assert {file for file, _ in read.told("error")} <= {NAMES[kind]}


@pytest.mark.parametrize("kind", ["step_trace", "device_operators", "gpu_operators", "timeline", "ai_cpu"])
def test_rows_before_a_cut_are_kept(tmp_path: Path, kind: str) -> None:
    text = whole_profile()[kind].rstrip("\n")
    texts = whole_profile() | {kind: text[:-4] if kind != "step_trace" else text[: text.rindex("\n") - 4]}

    read = Read(write(tmp_path, **texts))

    rows = {
        "step_trace": read.table("steps"),
        "device_operators": read.totals("AI_CORE", "operator"),
        "gpu_operators": read.totals("GPU", "operator"),
        "timeline": read.table("kernels"),
        "ai_cpu": read.totals("AI_CPU", "operator"),
    }[kind]
    assert rows.height > 0
    assert isinstance(rows, pl.DataFrame)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("text", ["[" * 100_000, "\x00\xff" * 50, "1e999999", '{"a":' * 5000], ids=range(4))
def test_hostile_text_gives_no_traceback(tmp_path: Path, kind: str, text: str) -> None:
    read = Read(write(tmp_path, **(whole_profile() | {kind: text})))

    assert read.table("issues").height or kind == "timeline_display"
