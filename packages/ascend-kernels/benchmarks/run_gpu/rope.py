"""Rotary position embedding."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from run_gpu.case import Case


def turned(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool) -> torch.Tensor:
    cos, sin = cos[:, None], sin[:, None]
    first, second = (heads[..., ::2], heads[..., 1::2]) if interleaved else heads.chunk(2, -1)
    parts = (first * cos - second * sin, second * cos + first * sin)
    return torch.stack(parts, -1).flatten(-2) if interleaved else torch.cat(parts, -1)


def cases() -> Iterator[Case]:
    tokens = 16384
    for interleaved in (False, True):
        query = torch.randn(tokens, 32, 128, device="cuda", dtype=torch.bfloat16)
        key = torch.randn(tokens, 8, 128, device="cuda", dtype=torch.bfloat16)
        angles = torch.rand(tokens, 64, device="cuda") * 6.3
        cos, sin = angles.cos(), angles.sin()
        positions = torch.randperm(tokens, device="cuda")

        def in_place(query, key, cos, sin, positions, i=interleaved):
            cos, sin = cos[positions], sin[positions]
            query.copy_(turned(query.float(), cos, sin, i))
            key.copy_(turned(key.float(), cos, sin, i))

        def ours(q=query, k=key, c=cos, s=sin, p=positions, i=interleaved):
            copies = q[:512].clone(), k[:512].clone()
            ascend_kernels.rope(*copies, c, s, p[:512], interleaved=i)
            return copies

        def right(q=query, k=key, c=cos, s=sin, p=positions, i=interleaved):
            rows = c[p[:512]].double(), s[p[:512]].double()
            return turned(q[:512].double(), *rows, i), turned(k[:512].double(), *rows, i)

        compiled = torch.compile(in_place)
        yield Case(
            f"rope {'pairs' if interleaved else 'halves'} {tokens}x(32+8)x128",
            ours,
            right,
            "elementwise",
            2 * (query.nbytes + key.nbytes) + cos.nbytes + sin.nbytes + positions.nbytes,
            {"torch.compile": lambda a=(query, key, cos, sin, positions), f=compiled: f(*a)},
            timed=lambda a=(query, key, cos, sin, positions), i=interleaved: ascend_kernels.rope(*a, interleaved=i),
        )
