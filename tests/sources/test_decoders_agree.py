"""The compiled decoder and the Python code read the same from every input, odd and damaged ones too.

A short run of `tests/fuzz/differential.py`, and one on events of real traces; `make fuzz` tries more.
"""

from __future__ import annotations

import gzip
import random
from functools import cache
from pathlib import Path

import msgspec
import pytest

from fuzz import differential
from fuzz.differential import LEAST_ACCEPTED, Case, events_of, located
from fuzz.mutations import event_text
from stepscope.sources.ascend.trace_layout import LAYOUT as ASCEND
from stepscope.sources.kineto.layout import LAYOUT as KINETO
from stepscope.sources.native import library
from stepscope.sources.trace_events.base import Layout

NEEDS_COMPILED = pytest.mark.skipif(not library.is_available(), reason="no compiled decoder here")
INPUTS = 400
SHARED = Path(__file__).parents[3] / "shared" / "data"
RECORDINGS = [
    *sorted(SHARED.glob("pytorch/single/*.json.gz")),
    *sorted(SHARED.glob("pytorch/dlrm*/*.json.gz"))[:1],
    *sorted(SHARED.glob("ascend/text_8rank/*_ascend_pt/*/trace_view.json"))[:1],
]


@cache
def recorded_events(layout: Layout) -> list[bytes]:
    """Events of the corpus, and of real traces if there are any beside the repository."""
    texts = [gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in RECORDINGS]
    return [*differential.own_events(layout), *(event for text in texts for event in events_of(text))]


def assert_same(cases: list[Case]) -> None:
    different = [case.text for case in cases if case.compiled != case.python]
    assert not different, f"{len(different)} inputs, e.g. {min(different, key=lambda text: len(repr(text)))!r}"
    accepted = sum(case.accepted for case in cases)
    assert accepted > LEAST_ACCEPTED * len(cases)  # else hardly anything was compared


@NEEDS_COMPILED
@pytest.mark.parametrize("kind", differential.KINDS)
def test_both_read_the_same(kind: str) -> None:
    assert_same([differential.case(kind, 1, number) for number in range(INPUTS)])


@NEEDS_COMPILED
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("layout", [KINETO, ASCEND], ids=["kineto", "ascend"])
def test_both_read_the_same_from_real_events(layout: Layout, last: bool) -> None:
    sources = [random.Random(f"{layout is KINETO} {last} {number}") for number in range(INPUTS)]

    assert_same([differential.events(source, layout, last, recorded_events(layout)) for source in sources])


@NEEDS_COMPILED
@pytest.mark.parametrize("value", [b"[1 2,,3]", b"[1,,2]", b"[1 2]", b"[,1]", b'{"a" 1}', b"[01]", b"[nul]"])
@pytest.mark.parametrize("key", [b"Input Dims", b"no argument that is kept"])
def test_an_argument_that_is_not_json_costs_its_event_only(key: bytes, value: bytes) -> None:
    event = b'{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":2,"args":{"%s":%s}}'
    compiled, plain = differential.decoders(KINETO)

    read = [decoder.decode(event % (key, value) + b"," + event % (key, b"[3]")) for decoder in (compiled, plain)]

    assert differential.seen(read[0]) == differential.seen(read[1])
    assert read[0].frames["operator"].height == 1
    assert [problem.count for problem in read[0].problems.values()] == [1]


@pytest.mark.parametrize("layout", [KINETO, ASCEND], ids=["kineto", "ascend"])
def test_an_event_reads_the_same_in_any_company(layout: Layout) -> None:
    """Where a trace is cut into chunks depends on cores and sizes; what its events say must not."""
    decoder = differential.decoders(layout)[1]
    different = []
    recorded = recorded_events(layout)
    for number in range(INPUTS):
        text = event_text(random.Random(number), recorded)
        try:
            events = msgspec.json.decode(b"[" + text + b"]", type=list[msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        alone = [decoder.decode(bytes(event)) for event in events]
        together = decoder.decode(text)
        for name in {name for one in alone for name in one.frames} | set(together.frames):
            parts = [row for one in alone if name in one.frames for row in located(one, one.frames[name])]
            if name not in together.frames or repr(parts) != repr(located(together, together.frames[name])):
                different.append(text)
                break

    assert not different, f"{len(different)} texts, e.g. {min(different, key=len)!r}"
