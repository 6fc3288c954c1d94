"""Rows that wait in a spool come back as they were, packed or not, in memory or in files."""

from __future__ import annotations

import resource
from pathlib import Path

import polars as pl
import pytest

from stepscope.sources import spool as spools
from stepscope.sources.native import library
from stepscope.sources.native.library import Refused
from stepscope.sources.native.packing import pack, unpack
from stepscope.sources.parts import PackedPart
from stepscope.sources.spool import Spool, stacked

_needs_native = pytest.mark.skipif(not library.is_available(), reason="the decoder is not compiled")
STATM = Path("/proc/self/statm")
_LONG = "a text of more than twelve bytes: é"


def _frames() -> list[pl.DataFrame]:
    """Frames of all kinds of columns and widths, of lengths around a byte of bits."""
    numbers = [0, -1, 255, 256, -(2**31), 2**40, 2**63 - 1, -(2**63), None]
    texts = ["", "twelve bytes", _LONG, None, _LONG + "!", "é" * 9]
    made = []
    for rows in (1, 7, 8, 9, 64, 131):
        frame = pl.DataFrame(
            {
                "wide": [numbers[k % len(numbers)] for k in range(rows)],
                "byte": [k % 256 - 7 for k in range(rows)],
                "same": [2**50] * rows,
                "unknown": [None] * rows,
                "text": [texts[k % len(texts)] for k in range(rows)],
                "different": [f"text number {k} of {rows}" for k in range(rows)],
                "ratio": [(None, 1.5, float("inf"), -0.0)[k % 4] for k in range(rows)],
                "small": [(-(2**31), 2**31 - 1, 5)[k % 3] for k in range(rows)],
            },
            schema_overrides={"unknown": pl.String, "small": pl.Int32, "wide": pl.Int64, "ratio": pl.Float64},
        )
        made.append(frame if rows % 2 else frame.with_columns(rare=pl.lit(rows)).slice(1))
    return made


@_needs_native
def test_packed_frames_come_back() -> None:
    frames = [frame for frame in _frames() if frame.height]
    whole = stacked(frames)
    packs = [pack(frame) for frame in frames]
    assert unpack(packs, whole.schema).equals(whole)
    some = whole.select("text", "rare", "wide")
    assert unpack(packs, some.schema).equals(some)


@_needs_native
def test_odd_numbers_come_back() -> None:
    frame = pl.DataFrame({"nan": [float("nan"), 1.0], "same": [float("nan")] * 2})
    assert unpack([pack(frame)], frame.schema).equals(frame)


@_needs_native
@pytest.mark.skipif(not STATM.exists(), reason="memory is measured on Linux alone")
def test_a_column_that_is_kept_does_not_keep_the_others() -> None:
    texts = [f"{_LONG} {k:0200}" for k in range(20_000)]
    frame = pl.DataFrame({"number": range(20_000), "text": texts})
    packed = pack(frame)
    unpack([packed], frame.schema)
    before = _resident_bytes()

    kept = [unpack([packed], frame.schema)["number"] for _ in range(50)]

    assert sum(len(numbers) for numbers in kept) == 50 * 20_000
    assert _resident_bytes() - before < 10 * sum(map(len, texts))


def _resident_bytes() -> int:
    return int(STATM.read_text().split()[1]) * resource.getpagesize()


@_needs_native
def test_equal_texts_are_kept_once() -> None:
    frames = [pl.Series("text", [_LONG * 100]).new_from_index(0, 1000).to_frame() for _ in range(9)]
    packs = [pack(frame) for frame in frames]
    assert sum(len(one.data) for one in packs) < 9 * 5000
    assert unpack(packs, frames[0].schema)["text"].unique().to_list() == [_LONG * 100]


@_needs_native
@pytest.mark.parametrize("frame", [pl.DataFrame({"a": [[1]]}), pl.DataFrame({"a": pl.Series([], dtype=pl.Int64)})])
def test_other_columns_are_refused(frame: pl.DataFrame) -> None:
    with pytest.raises(Refused):
        pack(frame)


@_needs_native
def test_one_name_of_two_types_is_refused() -> None:
    with pytest.raises(Refused):
        PackedPart([pl.DataFrame({"a": [1]}), pl.DataFrame({"a": ["1"]})])


@pytest.mark.parametrize("packed_bytes", [0, 1 << 14, 1 << 30])
@pytest.mark.parametrize("extra", [None, pl.Series("list", [[1]])])
def test_a_spool_gives_back_what_it_takes(
    tmp_path: Path, packed_bytes: int, extra: pl.Series | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spools, "_PACKED_BYTES", packed_bytes)
    monkeypatch.setattr(spools, "_PART_BYTES", 1 << 12)
    frames = [frame for frame in _frames() if frame.height] * 20
    if extra is not None:
        frames = [frame.with_columns(extra.new_from_index(0, frame.height)) for frame in frames]
    spool: Spool[str] = Spool(lambda: tmp_path, 1 << 14)
    for number, frame in enumerate(frames):
        spool.add("ab"[number % 2], frame)
    for key, own in (("a", frames[::2]), ("b", frames[1::2])):
        whole = stacked(own)
        assert stacked(list(spool.frames(key, ["text", "same"]))).equals(whole.select("text", "same"))
        assert stacked(list(spool.taken(key))).select(whole.columns).equals(whole)
        assert not spool.rows(key)
    assert not list(tmp_path.iterdir())


def test_without_a_disk_rows_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> Path:
        raise OSError("no space left")

    monkeypatch.setattr(spools, "_PACKED_BYTES", 0)
    spool: Spool[str] = Spool(full, 1)
    frames = [frame for frame in _frames() if frame.height]
    for frame in frames:
        spool.add("a", frame)
    whole = stacked(frames)
    assert stacked(list(spool.taken("a"))).select(whole.columns).equals(whole)
