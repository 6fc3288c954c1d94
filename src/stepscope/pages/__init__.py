"""Pages: what a command, a part of a report or a page of the web application shows, declared once for all of them."""

from __future__ import annotations

from importlib import import_module

from stepscope.pages.base import Page

NAMES = (
    "layout",
    "what_if",
    "critical_path",
    "slowdowns",
    "heat_map",
    "pipeline",
    "strategy",
    "summary",
    "ranks",
    "communication",
    "links",
    "bandwidth",
    "transfers",
    "calls",
    "overlap",
    "kernels",
    "api",
    "experts",
    "frequencies",
    "hangs",
    "steps",
    "gaps",
    "ranges",
    "copies",
    "ops",
    "launches",
    "sequences",
    "counters",
    "short_kernels",
    "functions",
    "flame",
    "modules",
    "flops",
    "shapes",
    "input",
    "memory",
    "host",
    "compare",
)
"""Modules here that declare a `PAGE`, in the order in which surfaces list them."""

PAGES: tuple[Page, ...] = tuple(import_module(f"{__name__}.{name}").PAGE for name in NAMES)
