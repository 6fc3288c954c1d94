"""The pages of the web application, made with NiceGUI."""

from __future__ import annotations

from stepscope.web.ui.mounting import mount

__all__ = ["mount"]
