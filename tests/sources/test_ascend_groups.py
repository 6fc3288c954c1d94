"""Keys of process groups and names of communication calls."""

from __future__ import annotations

import pytest

from stepscope.sources.ascend.groups import Groups, group_key, read_call_name


def test_a_key_is_the_one_that_names_of_calls_end_in() -> None:
    key = group_key("10.170.22.10%enp67s0f5_60000_0_1760000000000000")

    assert key == "11517043351967950690"


@pytest.mark.parametrize(
    ("name", "operation", "sequence"),
    [
        ("hcom_allReduce__690_12_1", "all_reduce", 12),
        ("hcom_reduceScatter__690_0_1", "reduce_scatter", 0),
        ("hcom_receive__007_3_2", "recv", 3),
        ("hcom_batchSendRecv__690_3_1", "send_recv", 3),
        ("allgather", "all_gather", None),
        ("something_else", "something_else", None),
    ],
)
def test_names_of_calls_give_operation_and_position(name: str, operation: str, sequence: int | None) -> None:
    call = read_call_name(name)

    assert (call.operation, call.sequence) == (operation, sequence)


def test_a_tag_names_a_group_only_if_no_other_ends_alike() -> None:
    one = Groups(names={"1690": "dp", "1691": "tp"}, members={"1690": [0, 1], "1691": [0, 2]})
    two = Groups(names={"1690": "dp", "2690": "tp"}, members={"1690": [0, 1], "2690": [0, 2]})

    assert one.of_tag("690") == "1690"
    assert two.of_tag("690") is None


def test_damaged_group_entries_stay_unknown() -> None:
    groups = Groups.from_metadata({"a": {"group_name": 3, "global_ranks": ["x"]}, "b": 5})

    assert groups.frame().select("name", "members").rows() == [(None, None)]
