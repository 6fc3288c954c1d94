"""The gRPC service `TrainingDataTrace`, by which clients of MindCluster's ClusterD switch a job: `data_trace.proto`.

Unlike the original it refuses other values than on and off, accepts any combination, has any number of subscribers, and
returns its numeric codes with the status OK, so that clients see them.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from enum import IntEnum
from functools import cache
from typing import Any

from stepscope.live.control.board import Board, CannotKeep, Requested
from stepscope.live.control.bounds import BOUNDS
from stepscope.live.control.wire import compiled
from stepscope.live.kinds import NAMES
from stepscope.live.switches import InvalidSwitch, changes_of

log = logging.getLogger("stepscope")

PROTOCOL = "stepscope/live/switching/data_trace.proto"
SERVICES = ("TrainingDataTrace", "profiling.TrainingDataTrace")
"""The published service has no package; clients that were generated with one call it by the second name."""
MOST_NAME = 512
"""Longer names of jobs are refused, and texts of clients are cut to this length; Kubernetes allows 253 + 1 + 253."""


class Code(IntEnum):
    """`code` of an answer."""

    OK = 200
    BAD_PARAMETER = 300
    NOT_FOUND = 404
    FAILED = 500


ServesJob = Callable[[str], bool]
"""Whether the manager serves a job, by `namespace/job` or task id."""


def serves(*names: str) -> ServesJob:
    """A manager serves one job.

    Args:
        names: Its task id, and what else it is called: `namespace/job` if clients shall name it so. A task id, or a
            name without namespace, is accepted in every namespace.

    Examples:
        >>> serves("pretrain")("default/pretrain"), serves("team/pretrain")("default/pretrain")
        (True, False)
    """
    known = frozenset(filter(None, names))
    return lambda asked: asked in known or asked.rpartition("/")[2] in known


@cache
def messages() -> Any:
    """Module of the messages.

    Raises:
        StepscopeError: If gRPC or its compiler is not installed.
    """
    return compiled(PROTOCOL)[0]


def add_to(server: Any, board: Board, serves_job: ServesJob) -> None:
    """Offer the service on a `grpc.aio` server that has not been started.

    Raises:
        StepscopeError: If gRPC or its compiler is not installed.
    """
    types = messages()
    import grpc  # noqa: PLC0415 - only a manager needs it

    service = _Service(board, serves_job)

    def handler(kind: Any, function: Any, request: Any, answer: Any) -> Any:
        return kind(function, request_deserializer=request.FromString, response_serializer=answer.SerializeToString)

    unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
    methods = {
        "ModifyTrainingDataTraceSwitch": handler(unary, service.modify, types.DataTypeReq, types.DataTypeRes),
        "GetTrainingDataTraceSwitch": handler(unary, service.get, types.DataStatusReq, types.DataStatusRes),
        "SubscribeDataTraceSwitch": handler(stream, service.subscribe, types.ProfilingClientInfo, types.DataStatusRes),
    }
    for name in SERVICES:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, methods),))


class _Service:
    """Answers calls. A call never ends with an error status because of what the client asked."""

    def __init__(self, board: Board, serves_job: ServesJob) -> None:
        self._board = board
        self._serves_job = serves_job
        self._subscribers = 0

    async def modify(self, request: Any, context: Any) -> Any:
        """Set all five switches."""
        answer = messages().DataTypeRes
        wrong = self._wrong_job(request.jobNsName)
        if wrong is not None:
            return answer(code=wrong[0], message=wrong[1])
        values = request.profilingSwitch
        try:
            changes = changes_of((names.switch, getattr(values, names.switch)) for names in NAMES.values())
            state = await self._board.request(changes, f"grpc {context.peer()}")
        except InvalidSwitch as error:
            return answer(code=Code.BAD_PARAMETER, message=f"{error}. The switches stay as they are")
        except CannotKeep as error:
            log.error("%s", error)
            return answer(code=Code.FAILED, message=str(error))
        return answer(code=Code.OK, message=f"set (revision {state.revision})")

    async def get(self, request: Any, context: Any) -> Any:  # noqa: ARG002 - as gRPC calls it
        """The present state."""
        wrong = self._wrong_job(request.jobNsName)
        if wrong is not None:
            return messages().DataStatusRes(code=wrong[0], message=wrong[1])
        return _answer(self._board.requested)

    async def subscribe(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """The present state, and each newer one."""
        answer = messages().DataStatusRes
        asked = request.jobId
        if not self._serves_job(asked):
            yield answer(code=Code.NOT_FOUND, message=f"this manager serves no job {_cut(asked)}")
            return
        if self._subscribers >= BOUNDS.most_subscribers:
            yield answer(code=Code.FAILED, message=f"there are {self._subscribers} subscribers; there can be no more")
            return
        self._subscribers += 1
        log.info("%s (%s) follows the switches", context.peer(), _cut(request.role))
        try:
            async for state in self._board.states():
                yield _answer(state)
        finally:
            self._subscribers -= 1

    def _wrong_job(self, name: str) -> tuple[Code, str] | None:
        """Why a job is not served."""
        parts = name.split("/")
        if len(name) > MOST_NAME or len(parts) != 2 or not all(parts):
            return Code.BAD_PARAMETER, f"jobNsName is {_cut(name)}; it must be namespace/job, e.g. default/pretrain"
        if not self._serves_job(name):
            return Code.NOT_FOUND, f"this manager serves no job {_cut(name)}"
        return None


def _answer(state: Requested) -> Any:
    types = messages()
    unset = "" if state.revision else "nobody has switched yet: a worker may have been started with other switches"
    return types.DataStatusRes(
        code=Code.OK, message=unset, profilingSwitch=types.ProfilingSwitch(**state.switches.as_guide())
    )


def _cut(text: str) -> str:
    return repr(text if len(text) <= 100 else f"{text[:97]}...")
