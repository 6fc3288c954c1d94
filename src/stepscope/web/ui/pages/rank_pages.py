"""Pages: rank_pages."""

from __future__ import annotations

from stepscope.advice.messages import Text
from stepscope.web.ui.figures import FigurePlace
from stepscope.web.ui.site_map import WebPage

PAGES_HERE: tuple[WebPage, ...] = (
    WebPage(
        "ops",
        Text("Operators", "算子"),
        "rank",
        "rank",
        figures=(
            FigurePlace(
                "operator-bars",
                by_rank=True,
                by_step=True,
                click=lambda context, point: (
                    context.state.changed({"operator_types.search": point.get("label") or point.get("y")}).url
                ),
            ),
        ),
        parts=("computation",),
    ),
)
