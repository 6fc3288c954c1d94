"""The state of the switches: what is accepted, and what is refused by name."""

from __future__ import annotations

import pytest

from stepscope.live.kinds import Kind
from stepscope.live.switches import ALL, DEFAULT, NONE, InvalidSwitch, Switches, initial, parse_guide, parse_words

GUIDE = '{"CommunicationOperator":"off","Step":"on","SaveCheckpoint":"on","FP":"on","DataLoader":"on"}'


def test_words_set_the_switches_that_they_name() -> None:
    changes = parse_words(["step=on", "communication=off", "FP=on", "SaveCheckpoint=off"])

    assert changes == {Kind.STEP: True, Kind.COMMUNICATION: False, Kind.FORWARD: True, Kind.CHECKPOINT: False}


def test_all_sets_every_switch() -> None:
    assert NONE.with_changes(parse_words(["all=on"])) == ALL
    with pytest.raises(InvalidSwitch, match="all is given both on and off"):
        parse_words(["all=on", "all=off"])


@pytest.mark.parametrize("words", [["all=off", "step=on"], ["step=on", "all=off"]])
def test_all_sets_those_that_are_not_named(words: list[str]) -> None:
    assert ALL.with_changes(parse_words(words)).as_names() == ["step"]


def test_content_of_the_guide_is_read_and_written_unchanged() -> None:
    state = NONE.with_changes(parse_guide(GUIDE))

    assert state == DEFAULT
    assert NONE.with_changes(parse_guide(str(state.as_guide()).replace("'", '"'))) == state


def test_any_combination_is_valid() -> None:
    state = ALL.with_changes(parse_guide('{"Step":"off","FP":"off"}'))

    assert state.as_names() == ["dataloader", "checkpoint", "communication"]


@pytest.mark.parametrize("value", ["On", "1", "", "ON", "true", "yes"])
def test_other_values_than_on_and_off_are_refused_by_name(value: str) -> None:
    with pytest.raises(InvalidSwitch, match=f"'Step' is '{value}'; it must be on or off"):
        parse_guide(f'{{"Step": "{value}"}}')
    with pytest.raises(InvalidSwitch, match="'Step' is"):
        parse_words([f"Step={value}"])


@pytest.mark.parametrize("content", ["", "[]", "null", "{", '"on"', "\\xff", '{"Step": true}', '{"Step": null}'])
def test_other_contents_are_refused(content: str) -> None:
    with pytest.raises(InvalidSwitch):
        parse_guide(content)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidSwitch, match="not valid JSON"):
        parse_guide(b'{"Step": "\xff"}')


def test_unknown_switches_are_refused_by_name() -> None:
    with pytest.raises(InvalidSwitch, match=r"'Kernel' is not a switch. Switches: step, fp, "):
        parse_guide('{"Kernel": "on"}')


def test_huge_contents_are_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidSwitch, match="at most 65,536 are read"):
        parse_guide('{"Step": "' + "x" * 1_000_000 + '"}')
    with pytest.raises(InvalidSwitch) as refused:
        parse_words(["x" * 10_000 + "=on"])
    assert len(str(refused.value)) < 300


def test_a_switch_that_is_both_on_and_off_is_refused() -> None:
    with pytest.raises(InvalidSwitch, match="step is given both on and off"):
        parse_words(["step=on", "Step=off"])


def test_a_key_that_is_given_twice_with_two_values_is_refused() -> None:
    with pytest.raises(InvalidSwitch, match="step is given both on and off"):
        parse_guide('{"Step": "on", "FP": "on", "Step": "off"}')
    assert parse_guide('{"Step": "on", "Step": "on"}') == {Kind.STEP: True}


@pytest.mark.parametrize("content", ["[" * 60_000, '{"Step":' * 8_000, '{"Step": ' + "[" * 400 + "]" * 400 + "}"])
def test_deeply_nested_contents_are_refused(content: str) -> None:
    with pytest.raises(InvalidSwitch):
        parse_guide(content)


def test_a_word_without_state_is_refused() -> None:
    with pytest.raises(InvalidSwitch, match="Example: step=on communication=off"):
        parse_words(["step"])


@pytest.mark.parametrize(
    ("text", "state"),
    [("", DEFAULT), ("all", ALL), ("none", NONE), ("step, FP", Switches(frozenset({Kind.STEP, Kind.FORWARD})))],
)
def test_the_environment_sets_the_initial_state(monkeypatch: pytest.MonkeyPatch, text: str, state: Switches) -> None:
    monkeypatch.setenv("STEPSCOPE_LIVE_SWITCHES", text)

    assert initial() == state
