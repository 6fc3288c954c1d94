"""What the manager makes of directories that ranks name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.live import places
from stepscope.live.capture.transfer import Arriving
from stepscope.live.control.acting import ManagerActions


@pytest.mark.parametrize("directory", ["/x/..", "..", "/", "", "/a/./..", "/x/\x1b[2J"])
def test_a_capture_goes_into_a_directory_of_its_own_whatever_its_rank_calls_it(
    directory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(places.STATE_VARIABLE, str(tmp_path))
    others = tmp_path / "job" / "captures" / "rank-0" / "other"
    others.mkdir(parents=True)
    (others / "kept").write_text("x")

    async def fetch(_rank: int, capture: str, target: Path) -> None:
        assert "/" not in capture
        Arriving(target)

    manager: Any = SimpleNamespace(job="job", fetch=fetch)
    read = asyncio.run(ManagerActions(manager).read(0, directory))

    assert Path(read).parent == others.parent
    assert (others / "kept").is_file()
