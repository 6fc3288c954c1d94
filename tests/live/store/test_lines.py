"""Ranges as lines of a record file."""

from __future__ import annotations

import json

import pytest

from stepscope.live.store.lines import call_name, host_range, timed_range
from stepscope.recording_format.light import FIELDS, call_in, call_of, kind_of, operation_of
from stepscope.recording_format.marks import collective_text


def test_a_range_on_the_host_is_two_markers_with_the_keys_in_their_order() -> None:
    first, last = map(json.loads, host_range(7, "step 3", "default", 10, 20, 123, 456).splitlines())

    assert list(first) == list(last) == list(FIELDS)
    assert (first["Kind"], first["Flag"], first["SourceKind"], first["Timestamp"], first["Id"]) == (1, 2, 0, 10, 7)
    assert first["MsptiObjectId"]["Pt"] == {"ProcessId": 123, "ThreadId": 456}
    assert (first["Name"], first["Domain"]) == ("step 3", "default")
    assert (last["Flag"], last["Timestamp"], last["Id"], last["Name"], last["Domain"]) == (4, 20, 7, "", "")


def test_a_range_on_the_device_is_four_markers_with_one_id() -> None:
    lines = [json.loads(line) for line in timed_range(7, "forward", "default", 1, 2, 3, 4, 5, 6, 0, 9).splitlines()]

    found = [(line["Flag"], line["SourceKind"], line["Timestamp"]) for line in lines]
    assert found == [(16, 0, 1), (32, 0, 2), (16, 1, 5), (32, 1, 6)]
    assert {line["Id"] for line in lines} == {7}
    assert [line["Name"] for line in lines] == ["forward", "", "", ""]
    assert lines[2]["MsptiObjectId"]["Ds"] == {"DeviceId": 0, "StreamId": 9}


@pytest.mark.parametrize("name", ['a "quoted" one', "two\nlines", "back\\slash", "步", "\x00", "\ud800"])
def test_any_name_stays_one_valid_line(name: str) -> None:
    text = host_range(1, name, "default", 1, 2, 3, 4)

    assert text.count("\n") == 2 and text.isascii()
    assert json.loads(text.split("\n")[0])["Name"] == name


def test_a_call_is_named_as_by_mindcluster_and_read_back() -> None:
    detail = collective_text('"tp"', 4, 400, "float32", 3, is_async=True)

    name = call_name("send", detail, stream=2)

    said = json.loads(name)
    assert all(isinstance(value, str) for value in said.values())
    assert {key: said[key] for key in ("streamId", "count", "dataType", "opName", "groupName", "destRank")} == {
        "streamId": "2",
        "count": "100",
        "dataType": "float32",
        "opName": "HcclSend",
        "groupName": "tp",
        "destRank": "3",
    }
    known = call_in(name)
    assert (known.operation, known.group, known.size_bytes, known.peer, known.is_async) == ("send", "tp", 400, 3, True)


@pytest.mark.parametrize(
    "operation",
    [
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "broadcast",
        "all_to_all",
        "reduce",
        "gather",
        "scatter",
        "barrier",
        "send",
        "recv",
        "send_recv",
    ],
)
def test_every_operation_survives_its_name(operation: str) -> None:
    assert operation_of(call_of(operation)) == operation


@pytest.mark.parametrize(
    ("name", "operation"),
    [("HCCLALLREDUCE", "all_reduce"), ("hcclAllgather", "all_gather"), ("HcclReceive", "recv"), ("", "unknown")],
)
def test_spellings_of_operations_are_known(name: str, operation: str) -> None:
    assert operation_of(name) == operation


@pytest.mark.parametrize(
    ("name", "domain", "kind"),
    [
        ("STEP 12", "default", ("step", 12)),
        ("step", "default", None),
        ("step x", "default", None),
        ("step 99999999999999999999", "default", None),
        ("Forward", "default", ("forward", 0)),
        ("SAVE_CHECKPOINT", "default", ("checkpoint", 0)),
        ("anything", "Communication", ("collective", 0)),
        ("mine", "default", None),
    ],
)
def test_kinds_are_known_by_name_in_any_case(name: str, domain: str, kind: tuple[str, int] | None) -> None:
    assert kind_of(name, domain) == kind


def test_a_call_of_another_form_is_known_as_far_as_possible() -> None:
    taskd = '{"streamId":"3","count":"10","dataType":"FP16","opName":"hcclAllreduce","groupName":"world"}'

    assert call_in(taskd).size_bytes == 20
    assert call_in("hcom_broadcast_") == ("broadcast", None, None, None, None, None, False)
    assert call_in('{"opName": 5, "count": -1, "groupName": null}').operation == "unknown"
    assert call_in("[" * 100_000).operation == "unknown"
