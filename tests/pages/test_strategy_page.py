"""The strategy page: what it advises where no graph was recorded."""

from __future__ import annotations

import pytest

from stepscope.pages.answering import Request, answer
from stepscope.pages.showing import shown_sections
from stepscope.pages.strategy import PAGE
from stepscope.run import Run
from stepscope.tables import RANKS


@pytest.mark.parametrize(
    ("framework", "told"), [("mindspore", "parallel_strategy=True"), ("pytorch", "Only MindSpore writes such graphs")]
)
def test_only_a_job_of_mindspore_is_advised_to_record_graphs(framework: str, told: str) -> None:
    rows = {
        rank: {"ranks": RANKS.frame(rank=[rank], world_size=[2], framework=[framework], parallelism=['{"pp": 2}'])}
        for rank in range(2)
    }

    stages = next(iter(shown_sections(answer(Run.from_frames(rows), PAGE, Request(table="strategy_stages")))))

    (sentence,) = (one for one in stages.sentences if "No graph was recorded" in one)
    assert told in sentence
    assert ("parallel_strategy=True" in sentence) == (framework == "mindspore")
