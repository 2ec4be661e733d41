# SPDX-License-Identifier: Apache-2.0
"""Keys and values in pages: a cache of blocks and a table that lists each request's blocks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ascend_sim.references import limits


def cache_tokens(op: str, argument: str, cache: Tensor, heads: int, block_size: int) -> Tensor:
    """View a cache as [blocks, block_size, heads, head_size].

    Accepts [blocks, block_size, heads * head_size], [blocks, heads, block_size, head_size] and the fractal
    [blocks, heads, head_size / c, block_size, c].
    """
    if cache.dim() == 3 and cache.shape[1] == block_size and cache.shape[2] % heads == 0:
        return cache.view(cache.shape[0], block_size, heads, -1)
    if cache.dim() == 4 and tuple(cache.shape[1:3]) == (heads, block_size):
        return cache.transpose(1, 2)
    if cache.dim() == 5 and cache.shape[1] == heads and cache.shape[3] == block_size:
        return cache.permute(0, 3, 1, 2, 4).flatten(3)
    allowed = (
        f"[blocks, {block_size}, heads * size], [blocks, {heads}, {block_size}, size] or "
        f"[blocks, {heads}, size / c, {block_size}, c] (num_key_value_heads {heads}, block_size {block_size})"
    )
    raise limits.refuse(op, f"{argument}.shape", list(cache.shape), allowed)


@dataclass(frozen=True, slots=True)
class Pages:
    """Where the tokens of each request lie.

    Args:
        op: The operator, for errors.
        table: Block numbers [B, blocks per request], int32; only entries a length reaches are read.
        lengths: Tokens per request.
        block_size: Tokens per block.
        blocks: Blocks of the cache.
    """

    op: str
    table: Tensor
    lengths: list[int]
    block_size: int
    blocks: int

    def __post_init__(self) -> None:
        batch, width = len(self.lengths), -(-max(self.lengths, default=0) // self.block_size)
        if self.table.dim() != 2 or self.table.shape[0] != batch or self.table.shape[1] < width:
            raise limits.refuse(self.op, "block_table.shape", list(self.table.shape), f"[{batch}, at least {width}]")

    def of(self, members: list[int]) -> Pages:
        """The pages of some requests."""
        if len(members) == len(self.lengths):
            return self
        lengths = [self.lengths[i] for i in members]
        return Pages(self.op, self.table[members], lengths, self.block_size, self.blocks)

    def compact(self) -> tuple[Pages, Tensor]:
        """The same tokens in a cache of only the blocks in use, and the numbers of those, request after request."""
        counts = [-(-n // self.block_size) for n in self.lengths]
        reached = torch.arange(max(counts, default=0))[None] < torch.tensor(counts)[:, None]
        used = self.table[:, : reached.shape[1]][reached].long()
        if used.numel() and (int(used.min()) < 0 or int(used.max()) >= self.blocks):
            given = f"{int(used.min())} to {int(used.max())}"
            raise limits.refuse(self.op, "block_table", given, f"blocks 0 to {self.blocks - 1}")
        table = torch.zeros(reached.shape, dtype=torch.int32)
        table[reached] = torch.arange(used.numel(), dtype=torch.int32)
        return Pages(self.op, table, self.lengths, self.block_size, used.numel()), used

    def slots(self) -> Tensor:
        """Token positions in the flattened cache, [B, longest length]; past a length its last token's is repeated.

        A request without tokens gets position 0.
        """
        column = columns(self.lengths)
        block = self.table.gather(1, column // self.block_size).long()
        if not min(self.lengths):
            block.mul_(torch.tensor(self.lengths)[:, None] > 0)
        if block.numel() and (int(block.min()) < 0 or int(block.max()) >= self.blocks):
            given = f"{int(block.min())} to {int(block.max())}"
            raise limits.refuse(self.op, "block_table", given, f"blocks 0 to {self.blocks - 1}")
        return block.mul_(self.block_size).add_(column % self.block_size)


def columns(lengths: list[int]) -> Tensor:
    """0, 1, ... of each request, [B, longest length]; past a length its last one is repeated.

    What is gathered there is masked out, but it is multiplied by a weight of zero first, so it must be a token and not
    the NaN that unused memory may hold.
    """
    last = torch.tensor(lengths).sub_(1).clamp_(min=0)
    return torch.arange(max(lengths, default=0))[None].minimum(last[:, None])


def take(tokens: Tensor, slots: Tensor) -> Tensor:
    """Rows ``slots`` [..., L] of a cache [blocks, block_size, heads, size], as [..., L, heads, size]."""
    if tokens.is_contiguous():
        return tokens.flatten(0, 1)[slots]
    return tokens[slots // tokens.shape[1], slots % tokens.shape[1]]
