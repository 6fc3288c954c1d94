"""The bubble of a pipeline: what it is put down to, and that it claims nothing of what others claim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.advice import Finding, advise
from stepscope.run import Run
from tests.pipelines import MS, Pipeline

FEW = Pipeline(stages=4, micro_batches=6, step_ns=300 * MS, steps=4)
MANY = replace(FEW, stages=2, micro_batches=24, step_ns=780 * MS)


def bubble(run: Run) -> Finding | None:
    found = [finding for finding in advise(run, strict=True) if finding.rule == "pipeline-bubble"]
    return found[0] if found else None


def test_few_micro_batches_are_told_with_what_even_stages_wait() -> None:
    found = bubble(FEW.run())

    assert found is not None
    assert (found.message, found.saving_ns, found.severity) == ("few", 0, "medium")
    assert found.parameters["ideal"] == pytest.approx(3 / 9)
    assert found.parameters["twice"] == pytest.approx(3 / 15)
    assert found.parameters["stages"] == ["180 ms"] * 4
    # Even stages wait for the passes of three others; what is seen of that is less here.
    assert found.saving_high_ns == round(found.evidence["bubble_ns"] / 2) < 3 * (FEW.forward_ns + FEW.backward_ns) / 2
    assert found.ranks == []


def test_many_micro_batches_of_even_stages_are_no_finding() -> None:
    assert bubble(MANY.run()) is None


def test_uneven_stages_are_why_even_with_many_micro_batches() -> None:
    found = bubble(replace(MANY, factor={1: 1.6}, step_ns=1400 * MS).run())

    assert found is not None
    assert (found.message, found.saving_ns, found.saving_high_ns) == ("uneven", 0, 0)
    assert (found.parameters["longest"], round(found.parameters["factor"], 2)) == (1, 1.23)


def test_few_micro_batches_of_uneven_stages_are_told_with_the_heavier_stage() -> None:
    found = bubble(replace(FEW, factor={2: 1.2}, step_ns=340 * MS).run())

    assert found is not None
    assert found.message == "few"
    assert (found.parameters["heavier"], round(found.parameters["times"], 2)) == (2, 1.14)
    told = bubble(FEW.run())
    assert told is not None and told.parameters["heavier"] is None


def test_a_schedule_that_waits_less_than_the_formula_is_not_told_what_it_has_to_wait() -> None:
    split = replace(FEW, backward_ns=10 * MS, weights_ns=10 * MS, micro_batches=8)
    ended = replace(split, step_ns=290 * MS).run()

    found = bubble(ended)

    assert found is not None and found.message == "less"
    assert (found.saving_ns, found.saving_high_ns) == (0, 0)
    known = ended.analyse("pipeline_schedule").row(0, named=True)
    assert (known["waits_less"], known["ideal_ratio"], known["micro_batches"]) == (True, None, 8)
    whole = replace(FEW, micro_batches=8, step_ns=360 * MS).run().analyse("pipeline_schedule").row(0, named=True)
    assert (whole["waits_less"], whole["ideal_ratio"]) == (False, pytest.approx(3 / 11))


def test_two_stages_of_unknown_model_chunks_do_not_wait_longer_than_their_schedule() -> None:
    """Three transfers each way are three micro-batches, or one in two model chunks."""
    found = bubble(replace(FEW, stages=2, micro_batches=3, step_ns=130 * MS).run())

    assert found is not None
    assert (found.message, found.parameters["most"]) == ("unknown", 3)


def test_a_stage_that_was_not_recorded_leaves_nothing_to_say() -> None:
    assert bubble(FEW.run(lambda rows: rows.pop(2))) is None


def test_a_job_without_stages_is_no_pipeline() -> None:
    assert bubble(replace(FEW, sizes=False, named=False).run()) is None
