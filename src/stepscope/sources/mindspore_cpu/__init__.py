"""The files that MindSpore's profiler writes of operators on the CPU, the same since 2.0.

They occur in a classic profile, in `FRAMEWORK` of an `*_ascend_ms` directory, and in windows of recordings:
`cpu_op_execute_timestamp` (when each operator ran) and `cpu_framework` (on what shapes), `cpu_op_type_info` and
`cpu_op_detail_info` (totals), `cpu_ms_memory_record` (the allocator).
"""
