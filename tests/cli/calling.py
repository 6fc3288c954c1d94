"""Calling the command in this process, and the recording to call it with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.cli import main

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader")


def printed(capture: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    """What a command prints: on standard output, or on standard error if it fails."""
    assert main([*map(str, words)]) == code
    out, err = capture.readouterr()
    assert "Traceback" not in err
    return err if code else out


def document(capture: pytest.CaptureFixture[str], *words: object) -> Any:
    """What a command prints as JSON."""
    return json.loads(printed(capture, *words, "--json"))
