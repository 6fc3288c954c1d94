"""Running another command as if it had been started by itself: its signals, its terminal, its exit code."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

_LOOK_S = 0.5
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_BY_A_PROCESS = 0
"""Signals with a code up to this were sent by a process; those of the terminal reach the whole group anyway."""


def run_command(command: Sequence[str], environment: Mapping[str, str], look: Callable[[], None]) -> int:
    """Run a program with its arguments to its end, and call `look` twice a second meanwhile.

    Signals that another process sends here are passed on, and end the command rather than this process.

    Returns:
        Its exit code; 128 and the number of the signal that killed it, as in a shell.

    Raises:
        OSError: If it cannot be run.
    """
    if not hasattr(signal, "sigtimedwait"):  # not on every system; there a signal ends this process alone
        return _as_in_a_shell(subprocess.run(command, env=environment, check=False).returncode)
    passed_on = {getattr(signal, name) for name in _PASSED_ON}
    waited = passed_on | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        child = subprocess.Popen(
            command,
            env=environment,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),  # noqa: PLW1509 - no threads here
        )
        while child.poll() is None:
            came = signal.sigtimedwait(waited, _LOOK_S)
            if came is not None and came.si_signo in passed_on and came.si_code <= _BY_A_PROCESS:
                child.send_signal(came.si_signo)
            look()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _as_in_a_shell(child.returncode)


def _as_in_a_shell(code: int) -> int:
    return 128 - code if code < 0 else code
