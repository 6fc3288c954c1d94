"""Peak FLOP/s of devices (dense, without sparsity), by data type of the inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping

HALF, SINGLE = "half", "single"

PEAKS: dict[str, Mapping[str, float]] = {
    r"V100.*PCIE": {HALF: 112e12, SINGLE: 14e12},
    r"V100": {HALF: 125e12, SINGLE: 15.7e12},
    r"\bT4\b": {HALF: 65e12, SINGLE: 8.1e12},
    r"A100|A800": {HALF: 312e12, SINGLE: 19.5e12},
    r"\bA10\b": {HALF: 125e12, SINGLE: 31.2e12},
    r"\bL40S\b": {HALF: 362e12, SINGLE: 91.6e12},
    r"H100.*PCIe": {HALF: 756e12, SINGLE: 51e12},
    r"H100|H800|H200": {HALF: 989e12, SINGLE: 67e12},
    r"\bB200\b": {HALF: 2250e12, SINGLE: 75e12},
    r"MI300X": {HALF: 1307e12, SINGLE: 163.4e12},
    r"MI250X": {HALF: 191.5e12, SINGLE: 23.95e12},
}
"""Device name to peak without sparsity, from the makers' data sheets; the first match counts. `half` is fp16 and bf16
on matrix units, `single` is fp32 (on NVIDIA without TF32, which is opt-in). A device of an MI250X is one of its two
dies."""

_TYPES = {
    HALF: r"(?i)bfloat16|bf16|half|float16|fp16",
    SINGLE: r"(?i)^(dt_)?(float|float32|fp32)$",
}

CUBE_OPERATIONS = 16**3 * 2
"""Operations per cycle of a cube unit of an Ascend device, fp16: 16 x 16 x 16 multiplications and additions."""


def peak_of(device: str | None, data_type: str | None) -> float | None:
    """Peak of a device for inputs of a data type; None if either is unknown.

    Examples:
        >>> peak_of("NVIDIA H100 80GB HBM3", "c10::BFloat16") == 989e12, peak_of("NVIDIA H100 80GB HBM3", "double")
        (True, None)
    """
    kind = next((kind for kind, words in _TYPES.items() if data_type and re.search(words, data_type)), None)
    known = next((peaks for words, peaks in PEAKS.items() if device and re.search(words, device)), {})
    return known.get(kind) if kind else None


def cube_peak(cores: float, frequency_mhz: float) -> float:
    """Peak of an Ascend device's cube units for fp16: `cores x frequency x 16^3 x 2`."""
    return cores * frequency_mhz * 1e6 * CUBE_OPERATIONS
