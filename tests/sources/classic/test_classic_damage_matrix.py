"""Every damage to every kind of file: it is named, and costs no more than if the file were not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from every_kind import ALTERNATIVES, NAMES, texts, write_every_kind

from damages import DAMAGES, HARMLESS, Damage, new_column, without_column
from stepscope.sources.classic import ClassicSource
from stepscope.sources.classic.files import KINDS
from stepscope.store.sinks import MemorySink

Pieces = dict[tuple[object, ...], list[tuple[Any, ...]]]
Told = dict[str, set[str]]
KEYS = {
    "operator_totals": ["unit", "level"],
    "input_pipeline": ["operator"],
    "host_usage": ["scope"],
    "rank_figures": ["name"],
}
"""Tables that several files make, with the columns that tell their parts apart."""
PREFERRED = {kind for kinds in ALTERNATIVES.values() for kind in kinds}
ROUNDS = [[kind for kind in list(NAMES)[at::4] if kind not in ALTERNATIVES] for at in range(4)] + [list(ALTERNATIVES)]
"""Kinds that are damaged together; related ones, which stand side by side, are in different rounds."""
UNTOLD = {
    "profiler_info": "what it does not tell, names of files do",
    "cpu_framework": "lines of text and numbers of processes say nothing that is read, and PyNative leaves it empty",
    "pipeline": "a queue of zeros is a queue",
}
"""Kinds whose damage may go untold, as far as it changes nothing else."""
POSSIBLE = {"negative": {"framework", "operator_memory"}, "large": set(NAMES)}
"""Damage to kinds of files that leaves numbers as they may be: of streams, of memory that is given back."""
OTHERS = {("cluster_steps", "step_trace"), ("cluster_steps", "device_steps"), ("flops", "device_operators")}
"""A file that is doubted because another one, the second, is damaged: the two do not fit."""


def read(files: Mapping[str, bytes], links: Iterable[str] = (), folders: Iterable[str] = ()) -> tuple[Pieces, Told]:
    """What a profile says, in pieces, and the files of its issues by severity; checks that nothing is written."""
    with TemporaryDirectory() as name:
        directory = write_every_kind(Path(name), files)
        for kind in (*links, *folders):
            place = directory / NAMES[kind]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir() if kind in folders else place.symlink_to(place.name)
        before = _state(directory)
        source, sink = ClassicSource(), MemorySink("classic")
        found = source.find(directory, sorted(entry.name for entry in directory.iterdir()))
        assert found is not None
        source.read(found.inputs[0], sink)
        assert _state(directory) == before
        return _pieces(sink.close(), directory)


def _state(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def _pieces(tables: dict[str, pl.DataFrame], directory: Path) -> tuple[Pieces, Told]:
    issues = tables.pop("issues", pl.DataFrame(schema={"severity": pl.String, "file": pl.String}))
    told: Told = {"error": set(), "warning": set(), "note": set()}
    for severity, file in issues.select("severity", "file").iter_rows():
        told[severity].add(Path(file).relative_to(directory).as_posix() if Path(file) != directory else "")
    pieces: Pieces = {}
    for name, table in tables.items():
        parts = table.group_by(KEYS[name], maintain_order=True) if name in KEYS else [((), table)]
        pieces |= {(name, *key): sorted(part.rows(), key=repr) for key, part in parts}
    return pieces, told


@cache
def sound(round_: int) -> tuple[dict[str, bytes], Pieces, Told]:
    """The undamaged profile of a round, and what it says."""
    out = PREFERRED if round_ == len(ROUNDS) - 1 else ALTERNATIVES.keys()
    files = {kind: content for kind, content in texts().items() if kind not in out}
    return (files, *read(files))


@cache
def costs(round_: int, kind: str) -> frozenset[tuple[object, ...]]:
    """What a profile loses, or says otherwise, where a file is missing."""
    files, pieces, _ = sound(round_)
    without, told = read({name: text for name, text in files.items() if name != kind})
    assert told["error"] == set()
    return frozenset(_differing(pieces, without))


def _differing(one: Pieces, other: Pieces) -> set[tuple[object, ...]]:
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def damaged(round_: int, damage: Damage) -> dict[str, bytes]:
    """The files of a round that a damage changes."""
    files = sound(round_)[0]
    changed = {kind: damage(NAMES[kind], files[kind]) for kind in ROUNDS[round_]}
    return {kind: text for kind, text in changed.items() if text is not None and text != files[kind]}


def check(round_: int, hurt: Iterable[str], pieces: Pieces, told: Told, may_hide: Iterable[str] = ()) -> None:
    """Damaged files, and they alone, are named; each costs at most what its absence costs."""
    expected = sound(round_)[1]
    hurt = set(hurt)
    differing = _differing(expected, pieces)
    assert differing <= set().union(*(costs(round_, kind) for kind in hurt))
    named = set().union(*told.values())
    untold = {kind for kind in hurt if costs(round_, kind) & differing and NAMES[kind] not in named}
    alone = {kind for kind in untold if not costs(round_, kind) & differing <= _others(round_, hurt - {kind})}
    assert alone <= {*UNTOLD, *may_hide}
    doubted = {NAMES[kind] for kind, other in OTHERS if other in hurt}
    assert told["error"] | told["warning"] <= {NAMES[kind] for kind in hurt} | doubted


def _others(round_: int, kinds: Iterable[str]) -> set[tuple[object, ...]]:
    return set().union(*(costs(round_, kind) for kind in kinds))


def test_there_is_a_file_of_every_kind() -> None:
    exports = {"iterations", "device_step_events", "device_trace", "device_summary"}  # which have tests of their own
    assert NAMES.keys() == KINDS.keys() - exports
    assert sorted(kind for kinds in ROUNDS for kind in kinds) == sorted(NAMES)


@pytest.mark.parametrize("round_", range(len(ROUNDS)))
def test_a_sound_profile_raises_no_doubt_and_a_missing_file_is_no_error(round_: int) -> None:
    told = sound(round_)[2]
    assert (told["error"], told["warning"]) == (set(), set())
    for kind in ROUNDS[round_]:
        assert costs(round_, kind) or kind in UNTOLD or kind in ("get_next", "flops_scope", "timeline_display")


@pytest.mark.parametrize("round_", range(len(ROUNDS)))
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_and_costs_only_what_the_file_says(round_: int, damage: str) -> None:
    changed = damaged(round_, DAMAGES[damage])

    check(round_, changed, *read(sound(round_)[0] | changed), may_hide=POSSIBLE.get(damage, set()))


@pytest.mark.parametrize("round_", range(len(ROUNDS)))
@pytest.mark.parametrize("column", range(5))
def test_a_missing_column_costs_only_what_the_file_says(round_: int, column: int) -> None:
    changed = damaged(round_, without_column(column))
    allowed = _others(round_, changed)

    pieces, told = read(sound(round_)[0] | changed)

    assert _differing(sound(round_)[1], pieces) <= allowed
    doubted = {NAMES[kind] for kind, other in OTHERS if other in changed}
    assert told["error"] | told["warning"] <= {NAMES[kind] for kind in changed} | doubted


@pytest.mark.parametrize("round_", range(len(ROUNDS)))
@pytest.mark.parametrize("damage", HARMLESS)
def test_what_takes_nothing_away_changes_nothing(round_: int, damage: Damage) -> None:
    changed = damaged(round_, damage)

    pieces, told = read(sound(round_)[0] | changed)

    assert _differing(sound(round_)[1], pieces) == set()
    assert (told["error"], told["warning"]) == (set(), set())
    if damage is new_column:
        assert {NAMES[kind] for kind in changed} <= told["note"]


@pytest.mark.parametrize("round_", range(len(ROUNDS)))
@pytest.mark.parametrize("how", ["links", "folders"])
def test_a_link_to_itself_or_a_folder_in_the_place_of_a_file_is_named(round_: int, how: str) -> None:
    files = {kind: text for kind, text in sound(round_)[0].items() if kind not in ROUNDS[round_]}

    pieces, told = read(files, **{how: ROUNDS[round_]})

    check(round_, ROUNDS[round_], pieces, told)
    assert {NAMES[kind] for kind in ROUNDS[round_]} - told["error"] <= {NAMES["timeline_display"]}
