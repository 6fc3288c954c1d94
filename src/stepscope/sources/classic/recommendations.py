"""`msadvisor/`: what MindSpore's own advisor recommended, kept as it stands."""

from __future__ import annotations

import polars as pl

from stepscope.json_values import json_text
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.side_files import AGAIN, read_object
from stepscope.tables import RANK_FIGURES


def write_recommendations(files: RankFiles, sink: Sink) -> None:
    """Write the newest recommendation, the JSON of its models, to `rank_figures`."""
    file = files.one("recommendation")
    content = read_object(file, sink)
    if content is None or file is None:
        return
    model = content.get("model")
    text = json_text(model) if isinstance(model, dict) else None
    if text is None:
        sink.issue("warning", file, "holds no recommendation", AGAIN, place="model")
        return
    sink.write(RANK_FIGURES, pl.DataFrame({"name": ["recommendation"], "text": [text]}))
