"""The API that most tests of it ask; without FastAPI, none of them can be loaded, and `make test` says so."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.web.api.api_server import Api

collect_ignore_glob = [] if find_spec("nicegui") else ["test_*.py"]


@pytest.fixture(scope="module")
def served() -> Iterator[Api]:
    """The API over the example, which tests leave as it is."""
    from tests.web.api.api_server import serving

    with serving() as api:
        yield api


@pytest.fixture
def changing() -> Iterator[Api]:
    """The API over the example, which a test may change."""
    from tests.web.api.api_server import serving

    with serving() as api:
        yield api
