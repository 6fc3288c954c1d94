"""Recording a training job: the Profiler, its backends and samplers. Imports neither Polars nor any surface."""
