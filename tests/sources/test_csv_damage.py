"""Damaged CSV files end in issues, and in nothing else that a user sees."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.run import open_runs
from stepscope.sources.csv_files.decoding import decode
from stepscope.sources.csv_files.layout import Field, Kind
from stepscope.sources.csv_files.values import EXACT, nanoseconds

PIPELINE = """\
op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,output_queue_usage_rate,sample_interval,parent_id,children_id
0,Batch,4,,,,0,10,,[4]
4,Shuffle,                60]",60.0,64,0.9375,10,0,[1]
1,Shuffle,1,"[60, 60, 60, 60]",60.0,64,0.9375,10,4,"[2, 3]"
2,TFReader,4,"[60, 60, 60, 60]",60.0,64,0.9375,10,1,
3,TFReader,4,"[60, 60, 60, 60]",60.0,64,0.9375,10,1,
"""


def test_a_quote_in_the_wrong_place_is_an_issue_and_no_warning(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    profiler = tmp_path / "profiler"
    profiler.mkdir()
    for rank, text in enumerate((PIPELINE, PIPELINE.replace("                60]", '1,"[60, 60]'))):
        (profiler / f"minddata_pipeline_raw_{rank}.csv").write_text(text)

    (run,) = open_runs(tmp_path, use_store=False)

    problems = run.issues["problem"].to_list()
    assert "a quote is not closed; rows after it may be lost" in problems
    assert "has rows that cannot be separated; 4 others may be lost" in problems
    assert [str(warning.message) for warning in recwarn] == []


@pytest.mark.parametrize(
    ("text", "places", "ns"),
    [
        ("1760000000000462.904\t", 3, 1_760_000_000_000_462_904),
        ("5.", 3, 5_000),
        ("-1.5", 3, -1_500),
        ("-0.5", 1, -5),
        ("1.-5", 3, None),
        ("9223372036854774.999", 3, 9_223_372_036_854_774_999),
        ("18446744073709552.000", 3, None),
        ("-9223372036854775808", 6, None),
        ("9223372036854775807", 0, 2**63 - 1),
    ],
)
def test_a_time_is_exact_or_unknown(text: str, places: int, ns: int | None) -> None:
    assert pl.select(nanoseconds(pl.lit(text), places)).item() == ns


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize(
    "texts",
    [
        ["0", "12", "12.5", "12.34", "12.3456789", "7.", "N/A"],
        ["922337203685.4775808", "176000000000", "1760000000000000000"],
        ["9223372036854775807", "9223372036854775808", "00000000000000000001"],
        ["92233720368547757.9", "9223372036854774.999", "9223372036853.999999"],
        ["-1.5", "5"],
        ["x", "5"],
    ],
)
def test_times_of_a_file_are_exact_or_unknown_as_each_alone(kind: Kind, texts: list[str]) -> None:
    text = "a,b\n" + "".join(f"{number},{text}\n" for number, text in enumerate(texts))
    fields = {0: Field("a", "int", ("a",)), 1: Field("b", kind, ("b",))}

    found = decode(text.encode(), 2, fields)["b"].to_list()

    alone = [None if text == "N/A" else pl.select(nanoseconds(pl.lit(text), EXACT[kind])).item() for text in texts]
    assert found == alone
