"""How many chunks a packed batch can have, and how the kernel is launched."""

from __future__ import annotations

BLOCK = 256


def most_chunks(sequences: int, tokens: int, chunk: int) -> int:
    """The most chunks that ``tokens`` tokens in ``sequences`` sequences can make: known without reading the lengths."""
    return 0 if tokens == 0 else min(tokens, (tokens + sequences * (chunk - 1)) // chunk)
