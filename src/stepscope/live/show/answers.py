"""What the gRPC service of a manager answers: its status, and its events as they come."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.live.show.event_source import source_of
from stepscope.live.show.event_types import AnyEvent, name_of, to_json
from stepscope.live.show.status import to_json as status_to_json
from stepscope.live.show.view import view_of
from stepscope.live.show.watched import Watched


def status(manager: Watched) -> Callable[[], bytes]:
    """A function that makes the status of a manager as JSON."""
    view = view_of(manager)
    return lambda: status_to_json(view.status())


def subscribe(manager: Watched) -> Callable[[Callable[[str, bytes], None]], Callable[[], None]]:
    """A function that hands name and JSON of each event of a manager to a function from now on.

    It returns a function that ends that.
    """
    source = source_of(manager)

    def begin(take: Callable[[str, bytes], None]) -> Callable[[], None]:
        def sink(event: AnyEvent) -> None:
            take(name_of(event), to_json(event))

        source.add(sink)
        return lambda: source.remove(sink)

    return begin
