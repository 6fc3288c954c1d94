"""The overview of a run."""

from __future__ import annotations

from stepscope.advice.messages import Text
from stepscope.web.ui.site_map import WebPage

PAGES_HERE: tuple[WebPage, ...] = (WebPage("", Text("Overview", "概览"), "run", sections=("summary",)),)
