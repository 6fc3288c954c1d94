"""Bytes of PyTorch's data types, as its profiler and its flight recorder spell them."""

from __future__ import annotations

_NAMES = {
    1: ("byte", "char", "bool", "int8", "uint8", "int8_t", "uint8_t", "signed char", "unsigned char"),
    2: ("half", "bfloat16", "float16", "short", "short int", "int16", "uint16"),
    4: ("float", "float32", "int", "unsigned int", "int32", "uint32", "complexhalf", "complex<half>"),
    8: ("double", "float64", "long", "long int", "int64", "uint64", "complexfloat", "complex<float>"),
    16: ("complexdouble", "complex<double>"),
}
_QUANTIZED = {"qint8": 1, "quint8": 1, "qint32": 4}
_BYTES = {**{name: size for size, names in _NAMES.items() for name in names}, **_QUANTIZED}


def element_bytes(element_type: str | None) -> int | None:
    """Bytes of one element of a data type; None if unknown.

    Examples:
        >>> [element_bytes(name) for name in ("Float", "c10::BFloat16", "long int", "c10::complex<float>")]
        [4, 2, 8, 8]
        >>> [element_bytes(name) for name in ("Float8_e4m3fn", "ComplexHalf", "Opaque")]
        [1, 4, None]
    """
    if not element_type:
        return None
    name = element_type.lower().replace("c10::", "").replace("at::", "").strip()
    return 1 if name.startswith("float8") else _BYTES.get(name)
