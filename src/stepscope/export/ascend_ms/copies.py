"""Files of the `profiler` directory that stand in the output folder, too: those of the data pipeline."""

from __future__ import annotations

from stepscope.export.rank_export import RankExport

COPIES = {
    "dataset.csv": "host_info/dataset_{rank}.csv",
    "minddata_pipeline_raw_{rank}.csv": "minddata_pipeline_raw_{rank}.csv",
    "minddata_pipeline_summary_{rank}.csv": "minddata_pipeline_summary_{rank}.csv",
    "minddata_pipeline_summary_{rank}.json": "minddata_pipeline_summary_{rank}.json",
}
"""Name in the output folder to name in the `profiler` directory."""


def write_copies(export: RankExport, folder: str) -> None:
    """Repeat in `folder` what this export has made of `COPIES`; files of earlier exports are none of its business.

    Raises:
        OSError: If a file cannot be read, or the disk does not take it.
    """
    for name, source in COPIES.items():
        made = source.format(rank=export.rank)
        if made in export.written:
            export.copy(f"{folder}/{name.format(rank=export.rank)}", export.directory / made)
