"""What the compiled decoder accepts, it reads as the Python code and Polars do; the rest it leaves to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepscope.sources.csv_files import decoding
from stepscope.sources.csv_files.layout import Field, Kind
from stepscope.sources.native.columns import read_table
from stepscope.sources.native.library import Refused, is_available
from stepscope.sources.trace_events.base import Arg, EventClass, Layout
from stepscope.sources.trace_events.decode import EventDecoder

pytestmark = pytest.mark.skipif(not is_available(), reason="no compiled decoder here")

ARGS = (Arg("Input Dims", "dims", "text"), Arg("Input type", "type", "text"), Arg("id", "number", "int"))
LAYOUT = Layout((EventClass("range", frozenset({"X"}), None, ARGS), EventClass("flow", frozenset({"s", "f"}), None)))
TEXTS = st.one_of(
    st.sampled_from(["", "a", "twelve bytes", "thirteen byte", "é" * 6, "é" * 7, "a long name of a kernel", "\n\"'"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"ph": st.sampled_from(["X", "s", "f"]), "name": TEXTS, "ts": st.integers(0, 10**12), "dur": st.just(1.5)},
        optional={"pid": TEXTS, "id": TEXTS, "other key": TEXTS, "args": st.dictionaries(
            st.sampled_from(["Input Dims", "Input type", "Input", "duration estimated", "duration"]), TEXTS)},
    ).flatmap(lambda event: st.permutations(list(event.items())).map(dict)),
    min_size=1,
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(EVENTS, st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :  ")]), st.booleans(), st.integers(0, 3))
def test_events_are_the_same_however_they_are_written(
    events: list[dict[str, Any]], separators: tuple[str, str], ascii_only: bool, blanks: int
) -> None:
    written = [json.dumps(event, separators=separators, ensure_ascii=ascii_only) for event in events]
    if blanks:  # a key need not look like the same key before
        written = [text.replace('"ts":', '"ts":' + " " * (n % (blanks + 1))) for n, text in enumerate(written)]
    text = separators[0].join(written).encode()
    compiled, plain = EventDecoder(LAYOUT), EventDecoder(LAYOUT)
    plain._compiled = None

    decoded = compiled._decode_clean(text, last=False)

    assert decoded is not None
    expected = plain.decode(text)
    assert decoded.frames.keys() == expected.frames.keys()
    for name, frame in expected.frames.items():
        assert decoded.frames[name].rows() == frame.rows()


FIELDS = {
    0: Field("name", "text", ("name",)),
    1: Field("start_ns", "time", ("start",)),
    2: Field("wait_ns", "duration", ("wait",)),
    4: Field("shapes", "shape", ("shapes",)),
    5: Field("last", "float", ("last",)),
}
PLAIN = [b"a", b"12.5\t", b"0.1", b"left out", b'"""4,1;2"""', b"1e-3"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize(
    "value",
    [b"", b"N/A", b"NA", b"7", b'"b, c"', b" x ", b"1760000000000462.9049\t", b"0.30000000000000004", b"-1.5",
     b" \xc2\xa0x", b"x\xe3\x80\x80 ", b"x\xc3\xa9y", b'"""a""b"""', b'""', b'"N/A"', b"nan", b"007", b"\xff",
     b"\xc2\xa0x", b"1,2", b'a"b', b" 1"],
)  # fmt: skip
def test_a_table_is_the_same_or_left_to_polars(tmp_path: Path, value: bytes, at: int, end: bytes) -> None:
    path = tmp_path / "table.csv"
    rows = [b"name,start,wait,unused,shapes,last", b",".join(PLAIN)]
    rows += [b",".join([*PLAIN[:at], value, *PLAIN[at + 1 :]]), b",".join(PLAIN)]
    path.write_bytes(end.join([*rows, b""]))

    compiled = decoding._plain(path.read_bytes(), 6, FIELDS)

    if compiled is not None:
        assert compiled.rows() == decoding._scan(path.read_bytes(), 6, FIELDS).collect().rows()


@pytest.mark.parametrize("kind", ["int", "small", "float", "duration", "ms", "kib", "mib", "gib", "device"])
@pytest.mark.parametrize(
    "value",
    ["0.5", "2.5", "-1.5", "-0", "0.0005", "0.0015", "123456.7895", "2147483647", "2147483648", "-2147483648.9",
     "9007199254740993", "9223372036854774", "9223372036854775807", "-9223372036854775808", "1e19", "1e300", "1e999",
     "NPU:3", "007", "99999999999", "N/A"],
)  # fmt: skip
def test_numbers_of_a_table_are_the_same_or_left_to_polars(kind: Kind, value: str) -> None:
    text = f"a,b\n1,2\n{value},2\n".encode()
    fields = {0: Field("a", kind, ("a",)), 1: Field("b", "int", ("b",))}

    compiled = decoding._plain(text, 2, fields)

    polars = decoding._scan(text, 2, fields).collect()
    assert compiled is None or compiled.equals(polars, null_equal=True)
    assert compiled is None or compiled.schema == polars.schema
    assert compiled is not None or (kind != "device" and value in ("NPU:3", "1e999", "007"))


def test_a_plain_table_is_not_left_to_polars(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"name,start,wait,unused,shapes,last\n" + b",".join(PLAIN) + b"\n")

    compiled = decoding._plain(path.read_bytes(), 6, FIELDS)

    assert compiled is not None
    assert compiled.rows() == [("a", 12500, 100, "4,1;2", 0.001)]
    assert compiled.dtypes == [pl.String, pl.Int64, pl.Int64, pl.String, pl.Float64]


@pytest.mark.parametrize("text", [b"name,start\na,1", b"name,start\n", b"", b"name,start\na\n", b"name,start\na,1\n\n"])
def test_a_table_of_anything_but_whole_rows_is_refused(text: bytes) -> None:
    with pytest.raises(Refused):
        read_table(text, ["text", "time"], ["name", "start"])


PLACED = Layout((EventClass("range", frozenset({"X"}), None, base=("name", "start_ns", "duration_ns", "place")),))
LABELS = st.one_of(st.none(), st.integers(-(2**40), 2**40), st.sampled_from(["", "7", "null", "stream 7", "é", "\n"]))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.tuples(LABELS, LABELS), min_size=1), st.booleans())
def test_places_are_the_process_and_thread_of_each_event(places: list[tuple[Any, Any]], ascii_only: bool) -> None:
    events = [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": pid, "tid": tid} for pid, tid in places]
    text = ",".join(json.dumps(event, ensure_ascii=ascii_only) for event in events).encode()

    decoded = EventDecoder(PLACED)._decode_clean(text, last=False)

    assert decoded is not None
    frame = decoded.frames["range"]
    assert frame.columns == ["name", "start_ns", "duration_ns", "place"]
    texts = [tuple(None if label is None else str(label) for label in place) for place in places]
    assert [list(decoded.places)[-1 - number] for number in frame["place"]] == texts


@pytest.mark.parametrize("label", [b"1.50", b"1e3", b"-0"])
def test_numbers_that_python_writes_in_another_way_are_left_to_it(label: bytes) -> None:
    text = b'{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":%s}' % label

    assert EventDecoder(PLACED)._decode_clean(text, last=False) is None
    assert list(EventDecoder(PLACED).decode(text).places) == [("1", str(json.loads(label)))]


SMALL = Layout((EventClass("range", frozenset({"X"}), None, (Arg("n", "n", "small"), Arg("m", "n", "small"))),))


def test_small_numbers_that_are_not_small_become_null() -> None:
    values = [2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 10**17, "12", None, 3.0]
    text = b",".join(
        b'{"ph":"X","name":"a","ts":1,"dur":2,"args":{"n":%s}}' % json.dumps(value).encode() for value in values
    )

    decoded = EventDecoder(SMALL)._decode_clean(text, last=False)

    assert decoded is not None
    assert decoded.frames["range"]["n"].to_list() == [2**31 - 1, None, -(2**31), None, None, 12, None, 3]
    assert decoded.frames["range"]["n"].dtype == pl.Int32


def test_the_second_spelling_of_an_argument_fills_the_first() -> None:
    event = b'{"ph":"X","name":"a","ts":1,"dur":2,"args":{%s}}'
    both = b",".join(event % args for args in (b'"n":1', b'"m":2', b'"m":3,"n":4'))
    one = b",".join(event % args for args in (b'"m":2', b""))

    decoded = [EventDecoder(SMALL)._decode_clean(text, last=False) for text in (both, one)]

    assert [d and d.frames["range"]["n"].to_list() for d in decoded] == [[1, 2, 4], [2, None]]
