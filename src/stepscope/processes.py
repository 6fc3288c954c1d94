"""Worker processes of this package: commands of their own, and the messages they exchange by pipes.

`multiprocessing` would run the user's script a second time in each worker, and fail if the script does not guard
against it. A message is msgpack behind its length.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from io import BufferedWriter, RawIOBase
from typing import IO, Any, BinaryIO, cast

import msgspec

from stepscope._allocator import allocator_environment

_STACK_BYTES = 8 << 20
"""Stack of the threads of Polars, as large as that of a main thread: Python code runs in them (`in_polars_thread`)."""
_LENGTH_BYTES = 8
_MAX_BYTES = 1 << 48
"""No message is nearly as long; what claims to be is text that something printed between messages."""


def starting(main: str) -> str:
    """What a worker runs, with the search path of this process: a function without arguments, as `module:name`."""
    module, _, name = main.partition(":")
    return f"import sys; sys.path[:] = sys.argv[1:]; from {module} import {name}; {name}()"


class WorkerProcess:
    """A worker, as the process that started it sees it.

    Args:
        start: What it runs, see `starting`.
        threads: How many threads Polars may use there.

    Raises:
        OSError: If it cannot be started.
    """

    def __init__(self, start: str, threads: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable or "", "-c", start, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Whoever waits until there is something to read must not miss what already lies in a buffer.
            bufsize=0,
            # A crash is reported by whoever waits for its answer; the noise of it is for those who look for the bug.
            stderr=None if os.environ.get("STEPSCOPE_DEBUG") else subprocess.DEVNULL,
            env={**worker_environment(threads), **os.environ, "POLARS_MAX_THREADS": str(threads)},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = BufferedWriter(cast(RawIOBase, self.process.stdin)), self.process.stdout

    def death(self) -> str:
        """How it ended, once it has: the name of a signal, or an exit status."""
        status = self.process.wait()
        with suppress(ValueError):
            return signal.Signals(-status).name
        return f"exit status {status}"

    def end(self) -> None:
        """End it and wait for it."""
        self.process.kill()
        with suppress(OSError):
            self.stdin.close()
        self.stdout.close()
        self.process.wait()


def worker_environment(threads: int) -> dict[str, str]:
    """Variables of a worker that uses Polars with some threads; only those about threads replace the user's."""
    return {
        **allocator_environment(),
        "RUST_MIN_STACK": str(_STACK_BYTES),
        "POLARS_MAX_THREADS": str(threads),
    }


_ENCODER = msgspec.msgpack.Encoder(enc_hook=os.fspath)
"""Messages hold paths as texts."""


def decoder(messages: Any) -> msgspec.msgpack.Decoder[Any]:
    """A decoder of messages of some types, which may hold paths."""
    return msgspec.msgpack.Decoder(messages, dec_hook=lambda kind, text: kind(text))


def is_running(process: int) -> bool:
    """Whether a process of this number runs on this host, of whatever user."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def message_of(content: Any) -> bytes:
    """A message, to be decoded by a decoder of its type."""
    return _ENCODER.encode(content)


def send(stream: IO[bytes], message: Any) -> None:
    """Write one message.

    Raises:
        OSError: If nobody reads any more.
    """
    payload = message_of(message)
    stream.write(len(payload).to_bytes(_LENGTH_BYTES, "little") + payload)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """Wait for one message, to be decoded by a decoder of its type.

    Raises:
        EOFError: If the other side has ended.
        msgspec.MsgspecError: If this is no message.
    """
    size = int.from_bytes(_read(stream, _LENGTH_BYTES), "little")
    if size > _MAX_BYTES:
        raise msgspec.DecodeError("too long for a message")
    return _read(stream, size)


def connected() -> tuple[queue.SimpleQueue[bytes], BinaryIO]:
    """In a worker: the messages that come in, and where answers go. The worker ends when its input does.

    That also happens when the process that started it dies.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then ends us
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the work prints must not mix with answers
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive_all, args=(sys.stdin.buffer, messages), daemon=True).start()
    return messages, out


def _receive_all(stream: BinaryIO, messages: queue.SimpleQueue[bytes]) -> None:
    while True:
        try:
            messages.put(receive(stream))
        except (EOFError, msgspec.MsgspecError):
            os._exit(0)


def _read(stream: IO[bytes], size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = stream.read(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
