"""Operators of a rank whose shapes change from step to step."""

from __future__ import annotations

from stepscope.pages.base import Page, Section

PAGE = Page(
    "shapes",
    "Show operators of a rank whose input shapes change from step to step, and what that costs.",
    [
        Section("shape_costs", "Operators by how much their shapes change", every_step=True),
        Section("dynamic_shape_types", "Types of operators {by_step}"),
        Section("dynamic_shapes", "Operators {by_step_and} shape"),
    ],
)
