"""The compiled decoder and the Python one read the same from every text, odd and damaged ones too.

`STEPSCOPE_MUTATIONS=100000` tries that many texts; a short run is part of every test run.
"""

from __future__ import annotations

import gzip
import itertools
import os
from functools import cache
from pathlib import Path

import msgspec
import polars as pl
import pytest

from sources.mutations import mutants
from stepscope.sources.ascend.trace_layout import LAYOUT as ASCEND
from stepscope.sources.kineto.layout import LAYOUT as KINETO
from stepscope.sources.trace_events import Layout, native
from stepscope.sources.trace_events.decode import Decoded, EventDecoder

MUTATIONS = int(os.environ.get("STEPSCOPE_MUTATIONS", "3000"))
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/*.json.gz"))[:1]
SHARED = [
    *sorted((ROOT.parent / "shared/data/pytorch").glob("single/*.json.gz")),
    *sorted((ROOT.parent / "shared/data/pytorch").glob("dlrm*/*.json.gz"))[:1],
    *sorted((ROOT.parent / "shared/data/ascend").glob("text_8rank/*_ascend_pt/*/trace_view.json"))[:1],
]
EVENTS_OF_A_KIND = 6
ASCEND_EVENTS: list[dict[str, object]] = [
    {"ph": "X", "name": name, "pid": 440320320, "tid": n, "ts": f"17600000000{n}2.180", "dur": 6.492, "args": args}
    for n, (name, args) in enumerate(
        [
            ("MatMulV2", {"Task Type": "AI_CORE", "connection_id": 77, "Stream Id": 2, "Task Id": 12}),
            ("hcom_allReduce__303_0_1", {"connection_id": 4294967295, "count": 1024, "data_type": "FP32"}),
            ("Memcpy", {"size(B)": 4096, "dest addr": "0x12c0", "notify_id": "18446744073709551615"}),
            ("Computing", {}),
            ("AscendCL@aclnnMatmul", {"Mode": "ACL_OP", "connection_id": 1004}),
        ]
        * 12
    )
] + [
    {"ph": "X", "name": f"Enqueue@{n}", "pid": 1, "tid": 2, "ts": "1760000000000443.627", "dur": 1, "cat": "enqueue",
     "args": {"correlation_id": n}}
    for n in range(20)
]  # fmt: skip
"""As an Ascend device's profiler writes them: times as text, no categories."""


@cache
def some_events() -> list[bytes]:
    """A few events of each category and phase of real traces, as their writers wrote them."""
    found: dict[tuple[str, str, str], list[bytes]] = {}
    for path in [*EXAMPLES, *SHARED]:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        whole = msgspec.json.decode(data)
        for event in whole["traceEvents"] if isinstance(whole, dict) else whole:
            kind = (str(event.get("ph")), str(event.get("cat")), str(event.get("name"))[:4])
            kept = found.setdefault(kind, [])
            if len(kept) < EVENTS_OF_A_KIND:
                kept.append(msgspec.json.encode(event))
    return [text for kept in found.values() for text in kept] + [msgspec.json.encode(one) for one in ASCEND_EVENTS]


def told(decoded: Decoded) -> tuple[object, ...]:
    """All that a decoder gives, in a form that can be compared."""
    frames = {name: (frame.schema, frame.rows()) for name, frame in sorted(decoded.batch.frames.items())}
    problems = {text: (one.count, one.place) for text, one in decoded.batch.problems.items()}
    return repr(frames), decoded.batch.skipped, problems, decoded.ended, decoded.rest


def python_only(layout: Layout) -> EventDecoder:
    decoder = EventDecoder(layout)
    decoder._native = None
    return decoder


@pytest.mark.skipif(not native.is_there(), reason="no compiled scanner here")
@pytest.mark.parametrize(("layout", "seed"), [(KINETO, 1), (ASCEND, 2)], ids=["kineto", "ascend"])
@pytest.mark.parametrize("last", [False, True])
def test_both_decoders_read_the_same(layout: Layout, seed: int, last: bool) -> None:
    compiled, plain = EventDecoder(layout), python_only(layout)
    texts = mutants(some_events(), seed + 10 * last)
    different, accepted = [], 0
    for text in itertools.islice(texts, MUTATIONS // 4):
        whole = text + b"]}" if last else text
        accepted += compiled._decode_clean(whole, last=last) is not None
        if told(compiled.decode(whole, last=last)) != told(plain.decode(whole, last=last)):
            different.append(whole)

    assert not different, f"{len(different)} texts, e.g. {min(different, key=len)!r}"
    assert accepted > MUTATIONS // 4 // 10  # else nothing was compared


@pytest.mark.parametrize(("layout", "seed"), [(KINETO, 3), (ASCEND, 4)], ids=["kineto", "ascend"])
def test_an_event_reads_the_same_in_any_company(layout: Layout, seed: int) -> None:
    """Where a trace is cut into chunks depends on cores and sizes; what its events say must not."""
    decoder = python_only(layout)
    different = []
    for text in itertools.islice(mutants(some_events(), seed), MUTATIONS // 8):
        try:
            events = msgspec.json.decode(b"[" + text + b"]", type=list[msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        alone = [decoder.decode(bytes(event)).batch.frames for event in events]
        together = decoder.decode(text).batch.frames
        for name in {name for frames in alone for name in frames} | set(together):
            parts = [frames[name] for frames in alone if name in frames]
            joined = pl.concat(parts) if parts else together[name].clear()
            if name not in together or repr(joined.rows()) != repr(together[name].rows()):
                different.append(text)
                break

    assert not different, f"{len(different)} texts, e.g. {min(different, key=len)!r}"
