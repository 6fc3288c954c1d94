"""Places in the tree of calls that are the same although one side has other calls around them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stepscope.compare.common_shapes import common_calls
from stepscope.compare.matching import Key, Place, matches

SHAPES = {"[[64, 128], [128, 512]]": 4.0}


def places(calls: Mapping[str, float | Place], backward: bool = False) -> dict[Key, Place]:
    """Places by paths as `a > b`, each with its calls in a step."""
    return {
        (tuple(path.split(" > ")), backward): place if isinstance(place, Place) else Place(place)
        for path, place in calls.items()
    }


def found(base: dict[Key, Place], new: dict[Key, Place]) -> list[tuple[list[str], list[str], str | None]]:
    """The matches, with paths as texts."""
    return [
        ([" > ".join(path) for path, _ in match.base], [" > ".join(path) for path, _ in match.new], match.how)
        for match in matches(base, new)
    ]


LINEAR = {"linear": 4, "linear > addmm": 4, "relu": 2}


def test_equal_trees_match_by_their_paths() -> None:
    assert [how for *_, how in found(places(LINEAR), places(LINEAR))] == ["path"] * 3


@pytest.mark.parametrize("wrapper", ["Region 0/0", "DDP.forward > Net.forward"])
def test_what_is_below_a_wrapper_of_one_side_is_matched(wrapper: str) -> None:
    wrapped = {f"{wrapper} > {path}": calls for path, calls in LINEAR.items()}
    new = places({**wrapped, wrapper: 1})

    rows = found(places(LINEAR), new)

    assert ([wrapper], [], None) not in rows and ([], [wrapper], None) in rows
    assert (["linear > addmm"], [f"{wrapper} > linear > addmm"], "inner") in rows
    assert [how for base, *_, how in rows if base] == ["inner"] * 3


def test_swapped_sides_are_matched_alike() -> None:
    base, new = places(LINEAR), places({"w": 1, **{f"w > {path}": calls for path, calls in LINEAR.items()}})

    assert sorted((b, n, how) for n, b, how in found(new, base)) == sorted(found(base, new))


def test_a_wrapper_whose_name_both_sides_have_is_recognised_if_nothing_else_fits() -> None:
    base = places({"adamw": 3, "adamw > item": 1})
    new = places({"adamw": 3, "item": 1})

    assert (["adamw > item"], ["item"], "inner") in found(base, new)


def test_what_fits_several_places_equally_well_is_not_matched() -> None:
    base = places({"a": 1, "b": 1, "a > copy": 2, "b > copy": 2})
    new = places({"a": 1, "b": 1, "a > c > copy": 2, "b > c > copy": 2, "c": 1})
    known, unknown = found(base, new), found(base, places({"a": 1, "b": 1, "copy": 2}))

    assert (["a > copy"], ["a > c > copy"], "inner") in known
    assert ([], ["copy"], None) in unknown


def test_calls_that_others_make_are_other_calls() -> None:
    base = places({"old": 1, "old > copy": 3})
    new = places({"young": 1, "young > copy": 3})
    other_calls = found(places({"copy": 3}), places({"w": 1, "w > copy": 5}))

    assert (["old > copy"], [], None) in found(base, new)
    assert all(how is None for *_, how in other_calls)


def test_shapes_tell_what_is_the_same_where_both_sides_have_wrappers_of_their_own() -> None:
    base = places({"MmBackward > mm": Place(4, SHAPES), "sum": Place(1, {"[[3]]": 1})})
    new = places({"Compiled > mm": Place(4, {"[[64, 128], [128, 512], [64, 512]]": 4}), "sum": Place(1, {"[[3]]": 1})})
    other = places({"Compiled > mm": Place(4, {"[[9, 9], [9, 9]]": 4}), "sum": Place(1, {"[[3]]": 1})})

    assert (["MmBackward > mm"], ["Compiled > mm"], "inner") in found(base, new)
    assert (["MmBackward > mm"], [], None) in found(base, other)


def test_shapes_of_single_numbers_tell_nothing() -> None:
    base, new = (
        {**places({f"{name} > fill_": Place(2, {"[[1]]": 2})}), **places({"sum": 1})} for name in ("Old", "New")
    )

    assert (["Old > fill_"], [], None) in found(base, new)


def test_other_shapes_are_the_same_calls_only_if_the_whole_job_has_other_shapes() -> None:
    wide = {"[[128, 128], [128, 512]]": 4.0}
    base = places({"mm": Place(4, SHAPES), "add": Place(1, {"[[64]]": 1})})
    same_job = places({"w > mm": Place(4, wide), "add": Place(1, {"[[64]]": 1})})
    other_batch = places({"w > mm": Place(4, wide), "add": Place(1, {"[[128]]": 1})})

    assert (["mm"], [], None) in found(base, same_job)
    assert (["mm"], ["w > mm"], "inner") in found(base, other_batch)


def test_calls_of_which_some_are_wrapped_stay_one_place() -> None:
    rows = found(places({"mm": 6}), places({"mm": 4, "w": 1, "w > mm": 2}))

    assert (["mm"], ["mm", "w > mm"], "inner") in rows


def test_forward_and_backward_are_never_matched() -> None:
    base, new = places({"mm": 4}), places({"w > mm": 4}, backward=True)

    assert [how for *_, how in found(base, new)] == [None, None]


def test_shapes_as_ascend_writes_them_have_calls_in_common() -> None:
    assert common_calls({"8,8;8,4": 3, "2,2": 1}, {"8,8;8,4": 2}) == 2
