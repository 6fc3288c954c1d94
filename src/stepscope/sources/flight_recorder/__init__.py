"""Dumps of PyTorch's flight recorder: what each rank called last, written when a job hangs."""

from stepscope.sources.flight_recorder.source import FlightRecorderSource as FlightRecorderSource
