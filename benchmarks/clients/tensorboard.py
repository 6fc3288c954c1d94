"""Serve a directory by TensorBoard until its profiler plugin has loaded it: `tensorboard.py COMMAND DIRECTORY`."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

LONGEST_S = 1800.0


def main(command: str, directory: str) -> int:
    """0 if the plugin lists the directory as loaded."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [command, "--logdir", directory, "--port", str(port), "--host", "127.0.0.1", "--load_fast=false"]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + LONGEST_S
        while time.monotonic() < until and server.poll() is None:
            if loaded(f"http://127.0.0.1:{port}/data/plugin/pytorch_profiler/runs"):
                return 0
            time.sleep(0.2)
    finally:
        server.terminate()
        server.wait()
    print("the plugin did not load the directory")
    return 1


def loaded(address: str) -> bool:
    """Whether the plugin lists runs and loads no more."""
    try:
        with urllib.request.urlopen(address, timeout=60) as reply:
            told = json.load(reply)
    except (urllib.error.URLError, OSError, ValueError):
        return False  # the server is not up yet
    return bool(told.get("runs")) and not told.get("loading")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
