"""The `rank_figures` table."""

from stepscope.tables.base import RANK, Column, Table

RANK_FIGURES = Table(
    name="rank_figures",
    doc="One row per figure or name that a source states about a rank as a whole and that no other table holds; see the names below.",
    key=(
        "rank",
        "name",
        "graph",
    ),
    columns=(
        RANK,
        Column(
            "name",
            "string",
            "What it is, with its unit: `forward_start_operator`, `backward_end_operator`, `cube_flops`, `cube_flops_per_s`, `vector_flops`, `vector_flops_per_s`, `flops`, `flops_per_s`, `flops_utilization_ratio`, `flop_scope_levels`, `memory_capacity_bytes`, `memory_peak_bytes`, `memory_static_bytes`, `memory_allocations`, `memory_deallocations`, `device_peak_flops_per_s`, `timeline_total_ns`, `timeline_streams`, `timeline_operators`, `timeline_executions`, `timeline_scope_levels`, `recommendation`.",
            nullable=False,
        ),
        Column("graph", "int64", "Graph (model) that it is about; null for all."),
        Column("value", "float64", "The figure; null for a name."),
        Column("text", "string", "The name, or JSON."),
    ),
)
