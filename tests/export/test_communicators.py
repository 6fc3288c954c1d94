"""Texts that are made for the keys of groups."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.export.communicators import communicator, key_of
from stepscope.sources.ascend.groups import group_key


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6, max_size=40))
def test_each_key_of_a_text_has_a_text(text: str) -> None:
    key = group_key(text)

    assert group_key(communicator(key)) == key
    assert communicator(key).startswith(f"{key}:")
    assert communicator(key).removeprefix(f"{key}:").strip(".").isalpha()


def test_the_same_key_has_the_same_text() -> None:
    assert communicator("11517043351967950690") == "11517043351967950690:momkjlnmlnmoionkjmmopmik"


def test_names_stay() -> None:
    assert [communicator(name) for name in ("default_pg", "AllReduce-op201", "", "10.1.1.1%eth0_60000_0_1")] == [
        "default_pg",
        "AllReduce-op201",
        "",
        "10.1.1.1%eth0_60000_0_1",
    ]
    assert key_of("default_pg") == group_key("default_pg")


def test_numbers_that_are_keys_of_no_text_become_words() -> None:
    odd = str((5 << 32) + 4)  # the halves of a key are both odd or both even
    for number in ("0", "12", "4294967295", odd, "007", str(1 << 64), "9" * 100, "٣"):
        assert communicator(number) == f"group {number}"
