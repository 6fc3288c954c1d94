"""Tests of what pages are built of need NiceGUI; without it, none of them can be loaded, and `make test` says so."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("nicegui") else ["test_*.py"]
