"""Dumps of a flight recorder are read as data, whatever a file asks for."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import pickletools
import struct
from pathlib import Path
from typing import Any

import pytest

from stepscope import open_run
from stepscope.errors import NothingReadable
from stepscope.sources.flight_recorder import pickled
from stepscope.sources.flight_recorder.calls import dump_of
from stepscope.sources.flight_recorder.pickled import RefusedPickle, plain_data
from stepscope.tables import RECORDED_CALLS
from tests.sources.flight_dumps import BASE_NS, call, dump, receive, send, waits, write_dump, write_job


@pytest.mark.parametrize(
    ("element_type", "size"), [("Float8_e4m3fn", 1024), ("c10::Half", 2048), ("ComplexHalf", 4096), ("Opaque", None)]
)
def test_the_size_of_a_call_follows_from_its_data_type(element_type: str, size: int | None) -> None:
    (row,) = dump_of(dump([call(input_dtypes=[element_type])])).rows

    assert row["size_bytes"] == size


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("memo", [True, False])
def test_plain_data_of_every_protocol_is_read(protocol: int, memo: bool) -> None:
    value = {"a": [1, -2, 300, 2**40, -(2**70), 1.5, None, True, False, "\u4e2d" * 200, ""], "t": ((), (1,))}
    value |= {"shared": [value["a"]] * 3, "more": (1, 2, 3, 4), 7: {}}
    value |= {"raw": [b"x", b"y" * 300]} if protocol > 2 else {}  # in older ones, bytes are a call
    text = pickle.dumps(value, protocol=protocol)

    assert plain_data(text if memo else pickletools.optimize(text)) == value


class _Runs:
    def __init__(self, code: str) -> None:
        self._code = code

    def __reduce__(self) -> Any:
        return (eval, (self._code,))


def _deep(levels: int) -> bytes:
    return b"\x80\x02" + b"]" * levels + b"a" * (levels - 1) + b"."


HOSTILE = {
    "a call": pickle.dumps(_Runs("open('run', 'w')"), protocol=2),
    "a call, newest protocol": pickle.dumps(_Runs("open('run', 'w')"), protocol=5),
    "a name": b"\x80\x02cos\nsystem\n.",
    "a name from the stack": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "an instance": b"\x80\x02(ios\nsystem\n.",
    "an object of an extension": b"\x80\x02\x82\x01.",
    "a persistent id": b"\x80\x02K\x01Q.",
    "a state": b"\x80\x02}}b.",
    "an old text": b"\x80\x02S'os'\n.",
    "another protocol": b"\x80\x09N.",
    "nothing": b"\x80\x02",
    "no end": b"\x80\x02N",
    "an end without a value": b"\x80\x02.",
    "two values": b"\x80\x02NN.",
    "an open mark": b"\x80\x02(N.",
    "a text longer than the file": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "a text of absurd length": b"\x80\x04\x8d" + b"\xff" * 8 + b"a.",
    "an absurd integer": b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"\1.",
    "a negative length": b"\x80\x02\x8b" + struct.pack("<i", -1) + b".",
    "something that was never kept": b"\x80\x02h\x07.",
    "a key without a value": b"\x80\x02}(Nu.",
    "a key that is a list": b"\x80\x02}(]Nu.",
    "a value added to nothing": b"\x80\x02Na.",
    "a value added below a mark": b"\x80\x02](Na.",
    "values added to a text": b"\x80\x02X\x01\0\0\0a(Ne.",
    "too few for a tuple": b"\x80\x02N\x87.",
    "a value taken from nothing": b"\x80\x02s.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pickle_is_refused_and_runs_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(RefusedPickle):
        plain_data(HOSTILE[name])

    assert not (tmp_path / "run").exists()


def test_sizes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickled, "MOST_VALUES", 1000)
    assert plain_data(_deep(500)) is not None
    with pytest.raises(RefusedPickle, match="more than 1000 values"):
        plain_data(_deep(600))
    monkeypatch.setattr(pickled, "MOST_BYTES", 100)
    with pytest.raises(RefusedPickle, match="larger than"):
        plain_data(_deep(100))


def test_deep_nesting_is_read_without_recursion() -> None:
    value = plain_data(_deep(200_000))

    assert value == [] or len(value) == 1


def test_keys_of_one_hash_cannot_stretch_the_work() -> None:
    with pytest.raises(RefusedPickle, match="has a key of a size"):
        plain_data(pickle.dumps({number * (2**61 - 1): 0 for number in range(3)}))


def test_a_value_whose_text_would_have_no_end_is_no_text(tmp_path: Path) -> None:
    """A list that has another one twice, which has another one twice, and so on: its text doubles each time."""
    endless: list[Any] = ["x"]
    for _ in range(60):
        endless = [endless, endless]
    odd = {"input_dtypes": [endless], "frames": [{"name": endless, "filename": endless, "line": endless}]}
    odd |= {"input_sizes": [[2**63 - 1] * 200_000], "thread_name": endless, "state": endless}
    calls = [call(**odd), call(), call(profiling_name="nccl:" + "_out" * 3_000_000)]
    content = dump([*calls, call("send 0->" + "9" * 5000, is_p2p=True)])
    content["entries"][1]["process_group"] = (endless, "default_pg")
    write_dump(tmp_path, 0, content)

    rows = open_run(tmp_path).table("recorded_calls").collect()

    assert rows.select("element_type", "input_elements", "peer").rows() == [
        ("unknown", None, None),
        *[("float32", 1024, None)] * 2,
    ]


def test_lists_that_stand_at_many_places_cannot_stretch_the_work(tmp_path: Path) -> None:
    wide: list[Any] = [7] * 2000
    shapes = [wide] * 2000
    entries = [call(record_id=k, collective_seq_id=k, input_sizes=shapes, frames=[]) for k in range(2000)]
    write_dump(tmp_path, 0, {"version": "2.10", "pg_config": {}, "entries": entries})

    with pytest.raises(NothingReadable, match="refers to more shapes than any dump has"):
        open_run(tmp_path)


@pytest.mark.parametrize("form", ["pickle", "packed", "json"])
def test_a_dump_becomes_rows(form: str, tmp_path: Path) -> None:
    content = dump(
        [call(), receive(0, 1), waits("_all_gather_base", input_dtypes=["BFloat16"], output_sizes=[[4, 1024]])]
    )
    file = write_dump(tmp_path, 12, content)
    if form == "packed":
        (tmp_path / "nccl_trace_rank_12.gz").write_bytes(gzip.compress(file.read_bytes()))
    elif form == "json":
        text = json.dumps(content).replace('"time_discovered_completed_ns": null', '"time_discovered_completed_ns": 0')
        (tmp_path / "rank_12.json").write_text(text)
    if form != "pickle":
        file.unlink()

    run = open_run(tmp_path)

    assert [(rank.rank, rank.facts["world_size"], rank.facts["backend"]) for rank in run.ranks] == [(12, 4, "nccl")]
    rows = run.table("recorded_calls").collect()
    assert RECORDED_CALLS.schema == rows.schema
    assert rows.select("group", "sequence", "operation", "peer", "size_bytes", "is_done", "completed_ns").rows() == [
        ("0 default_pg (0-3)", 1, "all_reduce", None, 4096, True, BASE_NS + 1000),
        ("0 default_pg (0-3)", 1, "recv", 1, 4096, True, BASE_NS + 10**6 + 1000),
        ("0 default_pg (0-3)", 2, "all_gather", None, 2048, False, None),
    ]
    assert run.table("groups").collect()["members"].to_list() == [[0, 1, 2, 3]]
    assert "/home/me/train.py(102): step" in run.table("stacks").collect()["text"][2]


def test_groups_that_share_a_name_are_told_apart_by_their_members(tmp_path: Path) -> None:
    for rank in range(4):
        half = [0, 1] if rank < 2 else [2, 3]
        write_dump(tmp_path, rank, dump([call(group="1")], {"0": range(4), "1": half}))

    groups = open_run(tmp_path).table("recorded_calls").collect()["group"].to_list()

    assert groups == ["1 sub1 (0-1)"] * 2 + ["1 sub1 (2-3)"] * 2


def test_dumps_that_do_not_state_what_is_point_to_point_name_the_peers(tmp_path: Path) -> None:
    content = dump([call(), send(0, 1)])
    for entry in content["entries"]:
        del entry["is_p2p"]
    content["entries"][1]["p2p_seq_id"] = 7
    write_dump(tmp_path, 0, content)

    rows = open_run(tmp_path).table("recorded_calls").collect()

    assert rows.select("operation", "is_point_to_point", "sequence", "peer").rows() == [
        ("all_reduce", False, 1, None),
        ("send", True, 7, 1),
    ]


def test_parts_of_a_batch_are_done_when_the_batch_is(tmp_path: Path) -> None:
    def batch(*, ended: bool) -> list[Any]:
        part = {"is_p2p": True, "p2p_seq_id": 1 + ended, "state": "scheduled", "retired": False}
        both = [call("send 0->1", **part), call("recv 0<-1", **part)]
        return [*both, call("coalesced", ended=ended, is_p2p=True, p2p_seq_id=1 + ended)]

    write_dump(tmp_path, 0, dump([*batch(ended=True), *batch(ended=False)]))

    rows = open_run(tmp_path).table("recorded_calls").collect()

    assert rows["is_done"].to_list() == [True] * 3 + [False] * 3
    assert rows["part"].to_list() == [0, 1, 2] * 2


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.999])
def test_a_dump_that_was_cut_off_is_left_out_with_a_reason(keep: float, tmp_path: Path) -> None:
    whole = write_dump(tmp_path, 0, dump([call()] * 20))
    write_dump(tmp_path, 1, dump([call()] * 20))
    os.truncate(tmp_path / "nccl_trace_rank_1", int(whole.stat().st_size * keep))

    run = open_run(tmp_path)

    assert [rank.rank for rank in run.ranks] == [0]
    assert [(Path(issue.file).name, "cut off" in issue.problem) for issue in run.unread] == [
        ("nccl_trace_rank_1", True)
    ]


@pytest.mark.parametrize(
    "entry",
    [None, 7, {}, {"record_id": "x"}, {"record_id": 1, "profiling_name": "nccl:x"}, {"record_id": -1}, [[]]],
)
def test_odd_entries_are_left_out_and_counted(entry: Any, tmp_path: Path) -> None:
    content = dump([call()])
    content["entries"].append(entry)
    write_dump(tmp_path, 0, content)

    run = open_run(tmp_path)

    assert run.table("recorded_calls").collect().height == 1
    assert run.issues.filter(run.issues["lost"] == 1).height == 1


@pytest.mark.parametrize("value", [None, "x", -1, 2**80, [], {}, float("nan"), [[None]], [["x", 2**70]], True])
def test_odd_values_become_unknown(value: Any, tmp_path: Path) -> None:
    keys = ["input_sizes", "input_dtypes", "frames", "collective_seq_id", "time_created_ns", "timeout_ms", "state"]
    for key in [*keys, "is_p2p", "retired"]:
        write_dump(tmp_path / key, 0, dump([call(**{key: value})]))

        run = open_run(tmp_path / key)

        assert run.table("recorded_calls").collect().height == 1
        run.analyse("hangs")


def test_other_pickles_and_json_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "model.pkl").write_bytes(pickle.dumps({"entries": [1], "weights": "x"}))
    (tmp_path / "config.json").write_text('{"entries": [], "version": "2"}')
    write_job(tmp_path / "dumps", {0: [call()]})

    run = open_run(tmp_path)

    assert [rank.path.name for rank in run.ranks] == ["nccl_trace_rank_0"]
    assert run.skipped == 1
