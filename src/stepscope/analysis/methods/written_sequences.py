"""Sequences of names in words."""

from __future__ import annotations


def written(words: list[str]) -> str:
    """A sequence in words.

    Examples:
        >>> written(["norm", "norm", "norm", "stack"])
        'norm (x3), stack'
    """
    parts: list[tuple[str, int]] = []
    for word in words:
        parts = [*parts[:-1], (word, parts[-1][1] + 1)] if parts and parts[-1][0] == word else [*parts, (word, 1)]
    return ", ".join(word if count == 1 else f"{word} (x{count})" for word, count in parts)
