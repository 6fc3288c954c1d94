"""Finds slow ranks, hosts, links and hangs while a job runs, from the digests and pulses of its ranks."""

from stepscope.live.detect.detector import Detector
from stepscope.live.detect.limits import Limits

__all__ = ["Detector", "Limits"]
