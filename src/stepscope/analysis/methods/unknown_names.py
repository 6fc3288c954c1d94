"""Errors about names that there are not: which similar ones there are, or which others."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from stepscope.errors import StepscopeError

LISTED = 8
"""Names that a message lists."""

SIMILAR, PIECE = 0.75, 3
"""Share of a mistyped name that a similar one contains, in pieces of at least so many characters; chosen by us."""


def unknown(word: str, value: str, known: Sequence[str], option: str, problem: str = "") -> StepscopeError:
    """An unknown name, with those that are similar, or else the first there are."""
    text = f"{option}: {problem or f'there is no {word} `{value}`'}"
    if not known:
        return StepscopeError(f"{text}; no {word} was recorded")
    if len(known) > 1 and (close := _similar(value, known)):
        text += f". Did you mean {few(close)}?"
        if len(known) > LISTED:
            return StepscopeError(text)
        return StepscopeError(f"{text} There {'is' if len(known) == 1 else 'are'} {few(known)}")
    return StepscopeError(f"{text}. There {'is' if len(known) == 1 else 'are'} {few(known)}")


def _similar(value: str, known: Sequence[str]) -> list[str]:
    """Names that contain most of a text, the most similar first, then those that differ little; at most three.

    Examples:
        >>> _similar("FlashAtention", ["aclnnFlashAttentionScore", "MatMul"])
        ['aclnnFlashAttentionScore']
    """
    shares = []
    for place, name in enumerate(known):
        # Short pieces in common are chance.
        blocks = difflib.SequenceMatcher(None, value.lower(), name.lower(), autojunk=False).get_matching_blocks()
        share = sum(block.size for block in blocks if block.size >= min(PIECE, len(value))) / max(len(value), 1)
        shares.append((share, place))
    ordered = sorted(shares, key=lambda one: (-one[0], one[1]))
    close = [*(known[place] for share, place in ordered if share >= SIMILAR), *difflib.get_close_matches(value, known)]
    return [*dict.fromkeys(close)][:3]


def few(names: Sequence[str], longest: int = 40) -> str:
    """The first of some names."""
    shown = [name if len(name) <= longest else f"{name[: longest - 3]}..." for name in names[:LISTED]]
    more = len(names) - len(shown)
    return ("; " if "," in "".join(shown) else ", ").join(shown) + (f" and {more} more" if more else "")
