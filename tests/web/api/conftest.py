"""The API that most tests of it ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.api.api_server import Api, serving


@pytest.fixture(scope="module")
def served() -> Iterator[Api]:
    """The API over the example, which tests leave as it is."""
    with serving() as api:
        yield api


@pytest.fixture
def changing() -> Iterator[Api]:
    """The API over the example, which a test may change."""
    with serving() as api:
        yield api
