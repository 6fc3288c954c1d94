"""The rows of an input are the same however many threads read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from every_format import FORMATS
from stepscope.sources.discover import discover
from stepscope.sources.registry import all_sources
from stepscope.store.sinks import MemorySink


@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_those_of_one_worker(tmp_path: Path, name: str) -> None:
    FORMATS[name](tmp_path)
    sources = {source.name: source for source in all_sources()}
    inputs = discover([tmp_path]).inputs

    assert inputs
    for item in inputs:
        alone, *others = (MemorySink(item.source, workers) for workers in (1, 2, 8))
        sources[item.source].read(item, alone)
        rows = alone.close()
        for sink in others:
            sources[item.source].read(item, sink)
            again = sink.close()
            assert sink.facts == alone.facts
            assert {*again} == {*rows}
            assert [table for table in rows if not rows[table].equals(again[table])] == []
