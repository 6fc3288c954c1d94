"""A browser for all tests that need one, since starting it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Page, browser


@pytest.fixture(scope="session")
def page() -> Iterator[Page]:
    """A page in a headless browser."""
    with browser() as opened:
        yield opened
