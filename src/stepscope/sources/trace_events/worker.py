"""The child process of `workers`: reads chunks from stdin, writes frames to files and answers to stdout."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path
from typing import BinaryIO

from stepscope.sources.trace_events.base import Layout
from stepscope.sources.trace_events.chunks import Chunk
from stepscope.sources.trace_events.decode import EventDecoder
from stepscope.sources.trace_events.workers import Answer


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the other side closes."""
    layout, scratch = pickle.load(requests)
    decoder = EventDecoder(layout)
    number = 0
    while True:
        try:
            chunk = pickle.load(requests)
        except EOFError:
            return
        number += 1
        prefix = f"{os.getpid()}-{number}"
        answer: Answer | str
        try:
            answer = _answer(decoder, chunk, layout, Path(scratch), prefix)
        except (OSError, MemoryError) as error:
            answer = str(error)
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()


def _answer(decoder: EventDecoder, chunk: Chunk, layout: Layout, scratch: Path, prefix: str) -> Answer:
    decoded = decoder.decode(chunk.text, last=chunk.last, offset=chunk.offset)
    files = {}
    for number, cls in enumerate(layout.classes):
        frame = decoded.batch.frames.get(cls.name)
        if frame is not None:
            files[cls.name] = scratch / f"{prefix}-{number}.arrow"
            frame.write_ipc(files[cls.name], compression="uncompressed")
    batch = decoded.batch
    return Answer(files, batch.skipped, batch.problems, decoded.ended, decoded.rest)


def main() -> None:
    """Serve on the standard streams until the parent closes them or goes away."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then ends us
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        os._exit(1)
