"""Tasks of communication calls, and how calls were carried out, in both exports of Ascend devices."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from ascend_files import (
    CALL,
    CALLS,
    COMMUNICATOR,
    EPOCH_NS,
    EPOCH_US,
    Tables,
    TraceEvents,
    make_database,
    rank_directory,
    read_db,
    read_text,
    sql,
    write_database,
)
from polars.testing import assert_frame_equal

CALL_NAME = CALL.format(0)
CALLED_US, LASTS_US = 7, 2
"""When the call of `write_database` begins, and how long it lasts."""
WORDS = {1001: "Notify_Wait", 1002: "Memcpy", 1003: "Reduce_Inline", 1004: "Unheard_Of", 1005: "MESH-RING"}
NUMBER = {word: number for number, word in WORDS.items()}
LINKS = {"HCCS": 1, "ROCE": 3, "INVALID_TYPE": 65535}
TRANSPORTS = {"SDMA": 0, "RDMA": 1, "LOCAL": 2}
TASKS = [
    ("Notify_Wait", 7.0, 0.5, 0, 1, "LOCAL", 0, "INVALID_TYPE"),
    ("Memcpy", 7.5, 1.0, 0, 1, "SDMA", 4096, "HCCS"),
    ("Reduce_Inline", 7.5, 1.25, 1, 1, "RDMA", 8192, "ROCE"),
    ("Memcpy", 8.5, 0.25, 1, 7, "SDMA", 1, "HCCS"),
]
"""Name, start (us), duration (us), plane, position of the far rank, transport, bytes, link."""
LATER = ("Memcpy", 9.5, 0.25, 1, 1, "SDMA", 1, "HCCS")
"""After the end of the call."""


def text_export(directory: Path, tasks: list[tuple[object, ...]]) -> Path:
    """A text export of a call and its tasks."""
    output = rank_directory(directory)
    trace = TraceEvents()
    trace._label("thread_name", CALLS, 2, name="Plane 1")
    said = {"alg_type": "MESH-RING", "relay": "no", "retry": "yes"}
    trace.add(CALL_NAME, CALLS, 0, CALLED_US, LASTS_US, connection_id=2, data_type="BFP16", count=1000, **said)
    for name, at, dur, plane, far, transport, size, link in tasks:
        args = {"src rank": 0, "dst rank": far, "transport type": transport, "size(Byte)": size, "link type": link}
        trace.add(name, CALLS, 1 + plane, at, dur, **args, **{"stream id": 5, "data type": "INVALID_TYPE"})
    trace.write(output)
    return output.parent


def database_export(directory: Path, tasks: list[tuple[object, ...]]) -> Path:
    """The same as a database."""
    output = rank_directory(directory)
    path = write_database(output, leave_out=("COMMUNICATION_OP",))
    sql(path, *(f"INSERT INTO STRING_IDS VALUES ({number}, '{word}')" for number, word in WORDS.items()))
    texts = {word: f"(SELECT id FROM STRING_IDS WHERE value = '{word}')" for word in (CALL_NAME, COMMUNICATOR)}
    op = "opName, startNs, endNs, connectionId, groupName, dataType, count, algType, relay, retry, deviceId"
    part = "name, globalTaskId, taskType, planeId, groupName, srcRank, dstRank, transportType, size, dataType, linkType"
    tables: Tables = {"COMMUNICATION_OP": (op, []), "COMMUNICATION_TASK_INFO": (part, [])}
    make_database(path, tables)
    start = EPOCH_NS + CALLED_US * 1000
    values = (
        f"{texts[CALL_NAME]}, {start}, {start + LASTS_US * 1000}, 2, {texts[COMMUNICATOR]}, 11, 1000, 1005, 0, 1, 3"
    )
    sql(path, f"INSERT INTO COMMUNICATION_OP VALUES ({values})")
    for number, (name, at, dur, plane, far, transport, size, link) in enumerate(tasks, 200):
        begin = EPOCH_NS + round(at * 1000)
        task = f"{begin}, {begin + round(dur * 1000)}, 3, 2, {number}, {NUMBER[name]}, 5, 4242"
        kinds = f"{TRANSPORTS[transport]}, {size}, 65535, {LINKS[link]}"
        sql(
            path,
            f"INSERT INTO TASK VALUES ({task})",
            "INSERT INTO COMMUNICATION_TASK_INFO VALUES "
            f"({texts[CALL_NAME]}, {number}, {NUMBER[name]}, {plane}, {texts[COMMUNICATOR]}, 0, {far}, {kinds})",
        )
    return output.parent


def ordered(tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    return tables["communication_tasks"].sort("start_ns", "plane")


def test_both_exports_have_the_same_tasks(tmp_path: Path) -> None:
    text = ordered(read_text(text_export(tmp_path / "text", TASKS)))
    database = ordered(read_db(database_export(tmp_path / "db", TASKS)))

    assert_frame_equal(text, database)
    assert text["start_ns"].to_list() == [EPOCH_US * 1000 + round(at * 1000) for _, at, *_ in TASKS]
    assert text["duration_ns"].to_list() == [500, 1000, 1250, 250]
    assert text["name"].to_list() == [name for name, *_ in TASKS]
    assert text["call"].to_list() == [CALL_NAME] * 4
    assert text.select("device", "stream").unique().rows() == [(3, 5)]
    assert text["plane"].to_list() == [0, 0, 1, 1]
    assert text["source"].to_list() == [4] * 4, "global ranks: the group is of the ranks 4 and 7"
    assert text["destination"].to_list() == [7, 7, 7, None], "the group has no eighth member"
    assert text["transport"].to_list() == ["LOCAL", "SDMA", "RDMA", "SDMA"]
    assert text["link"].to_list() == [None, "HCCS", "ROCE", "HCCS"]
    assert text["size_bytes"].to_list() == [0, 4096, 8192, 1]
    assert text["element_type"].to_list() == [None] * 4


@pytest.mark.parametrize("export", ["text", "db"])
def test_calls_know_how_they_were_carried_out(tmp_path: Path, export: str) -> None:
    tables = read_text(text_export(tmp_path, TASKS)) if export == "text" else read_db(database_export(tmp_path, TASKS))

    (call,) = tables["collectives"].select("name", "algorithm", "relayed", "retried").rows()
    assert call == (CALL_NAME, "MESH-RING", False, True)


def test_a_task_of_an_unusual_name_is_kept_and_one_after_the_call_is_part_of_none(tmp_path: Path) -> None:
    unusual = ("Unheard_Of", *TASKS[1][1:])

    text = ordered(read_text(text_export(tmp_path, [unusual, LATER])))

    assert text["name"].to_list() == ["Unheard_Of", "Memcpy"]
    assert text["call"].to_list() == [CALL_NAME, None]
    assert text["duration_ns"].to_list() == [1000, 250]
    assert text["size_bytes"].to_list() == [None, 1]
    assert text["destination"].to_list() == [None, None], "whose ranks they are is known by the call alone"
