"""The rules, one per module. Importing this package registers them; a new one needs a file and a line here."""

from stepscope.advice.rules import (  # noqa: F401 - importing a rule registers it
    ai_cpu,
    checkpoint,
    compile_time,
    cpu_busy,
    data_loader,
    data_queue,
    exposed_communication,
    host_queue,
    idle_time,
    iteration_interval,
    long_step,
    memory_capacity,
    memory_copies,
    memory_fragmentation,
    memory_leak,
    pipeline_bottleneck,
    single_pause,
    slow_group,
    slow_link,
    slow_rank,
)
