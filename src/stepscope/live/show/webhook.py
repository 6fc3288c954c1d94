"""Events of a job as HTTP requests: a POST of one JSON object each."""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.http_target import Target
from stepscope.live.show.event_source import deliver
from stepscope.live.show.event_types import AnyEvent, to_json
from stepscope.live.show.outbox import CannotDeliver, Outbox
from stepscope.live.show.watched import Watched

SECRET_VARIABLE = "STEPSCOPE_WEBHOOK_SECRET"
SECRET_FILE_VARIABLE = "STEPSCOPE_WEBHOOK_SECRET_FILE"
HEADER_VARIABLE = "STEPSCOPE_WEBHOOK_HEADER"
"""The header that carries the secret, if it is not `Authorization`."""
TIMEOUT_S = 5.0
"""For connecting, and for each wait for the answer."""
_TRY_AGAIN = (408, 425, 429)


def post(target: Target, body: bytes) -> None:
    """Send one request and judge the answer.

    Raises:
        CannotDeliver: Unless the answer is 2xx.
    """
    try:
        answer = target.post(body, timeout_s=TIMEOUT_S)
    except (OSError, http.client.HTTPException) as error:
        raise CannotDeliver(f"no answer ({error or type(error).__name__})", again=True) from error
    if answer.is_good:
        return
    if answer.is_redirect:
        raise CannotDeliver("the answer is a redirect, which is not followed. Give the final URL", again=False)
    again = answer.status >= 500 or answer.status in _TRY_AGAIN
    raise CannotDeliver(f"the answer is {answer.status} {answer.reason}", again=again)


def stated_secret() -> str:
    """The secret from the environment, or from the file that it names; empty if there is none.

    Raises:
        StepscopeError: If the file cannot be read.
    """
    file = os.environ.get(SECRET_FILE_VARIABLE)
    if os.environ.get(SECRET_VARIABLE) or not file:
        return os.environ.get(SECRET_VARIABLE, "").strip()
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StepscopeError(
            f"{file}: the secret of the webhook cannot be read. Check {SECRET_FILE_VARIABLE}"
        ) from error


def follow(manager: Watched, url: str, *, header: str = "", secret: str = "") -> Callable[[], None]:
    """Send the events of a manager to a URL from now on, in order, one a request. The event loop never waits.

    A failed request is repeated with growing pauses; while more than a bounded number waits, the oldest are lost.

    Args:
        url: `https://...`, or `http://...` on this host.
        header: Name of the header with the secret. Default: `STEPSCOPE_WEBHOOK_HEADER`, else `Authorization`.
        secret: Its value, e.g. `Bearer ...`. Default: `STEPSCOPE_WEBHOOK_SECRET`, else what is in the file that
            `STEPSCOPE_WEBHOOK_SECRET_FILE` names, else none.

    Returns:
        A function that delivers what is queued, for a short time, and ends.

    Raises:
        StepscopeError: If the URL cannot be used, or the file cannot be read.
    """
    secret = secret or stated_secret()
    header = header or os.environ.get(HEADER_VARIABLE, "") or "Authorization"
    target = Target(url, {header: secret} if secret else {})
    box: Outbox[AnyEvent] = Outbox(f"webhook {target.shown}", lambda event: post(target, to_json(event)))
    return deliver(manager, box)
