"""Tasks in workers of a Ray cluster, on this machine or on many."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from stepscope.errors import StepscopeError
from stepscope.processes import message_of
from stepscope.ray_workers import RayCluster, RayWorker
from stepscope.ray_workers import WorkerLost as RayWorkerLost
from stepscope.run.engine.messages import MOST_RUNS, Order
from stepscope.run.engine.threads import Threads
from stepscope.run.engine.workers import Worker, WorkerLost, Workers

_SERVE = "stepscope.run.worker:serving"


class Ray(Workers):
    """Runs tasks in workers of a Ray cluster, and has them read inputs that are not in the store.

    The workers read the inputs and the store by the same paths as this process, so on other machines both must lie on
    storage that all nodes share. Only questions and answers travel. Otherwise as `Processes`.

    Args:
        address: `HOST:PORT`, or `auto` for the cluster of which this machine is a node. Default: a cluster of our own
            on this machine, which ends with this object or this process.
        count: Number of workers. Default: one per CPU of the cluster.
    """

    def __init__(self, address: str | None = None, count: int | None = None) -> None:
        self.cluster = RayCluster(address, count)
        self._lock = threading.Lock()
        self._started: tuple[Threads, list[_Worker]] | None = None

    def workers(self) -> tuple[Threads, Sequence[Worker]]:
        """See `Workers`."""
        with self._lock:
            if self._started is None:
                count = self.cluster.count
                self._started = Threads(count), [_Worker(self.cluster.worker(_SERVE)) for _ in range(count)]
            return self._started

    def close(self) -> None:
        """End the workers, and the cluster if it was started for them; another question starts new ones."""
        with self._lock:
            for worker in self._started[1] if self._started else ():
                worker.close()
            self._started = None
        self.cluster.close()


class _Worker(Worker):
    """One worker of the cluster, and the runs that it has."""

    def __init__(self, worker: RayWorker) -> None:
        self._worker = worker
        self._runs: list[int] = []

    def reply(self, order: Order) -> bytes:
        """See `Worker`.

        Raises:
            StepscopeError: If its node does not have the stored rows.
        """
        with self._worker.at_work:
            try:
                if not self._worker.is_started:
                    self._worker.start()
                    self._runs = []
                if order.run.id not in self._runs:
                    self._give(order)
                return self._worker.ask(message_of(order.ask))
            except RayWorkerLost as error:
                raise WorkerLost(f"died ({error})") from error

    def _give(self, order: Order) -> None:
        """Send it a run, whose rows must be where it can read them."""
        missing = self._worker.missing([str(rank.directory) for rank in order.run.ranks])
        if missing:
            raise StepscopeError(
                f"node {self._worker.node} has no {missing[0]}: the stored rows of {len(missing)} ranks are not there. "
                "Set STEPSCOPE_CACHE to a directory on storage that all nodes of the cluster share"
            )
        self._worker.ask(message_of(order.run))
        self._runs = [*self._runs, order.run.id][-MOST_RUNS:]

    def close(self) -> None:
        """See `Worker`."""
        with self._worker.at_work:
            self._worker.end()
            self._runs = []
