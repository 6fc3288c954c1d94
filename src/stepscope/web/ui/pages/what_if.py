"""Pages: what_if."""

from __future__ import annotations

from stepscope.web.ui.site_map import WebPage

PAGES_HERE: tuple[WebPage, ...] = ()
