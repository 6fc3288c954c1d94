"""Ranges and samples of a run as OpenTelemetry's spans and metrics."""

from stepscope.export.otlp.writing import write_otlp as write_otlp
