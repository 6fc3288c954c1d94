"""Recording a training job: the Profiler, its backends and samplers. Loads neither Polars nor any surface."""
