"""The normalisation operators."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from run_gpu.case import Case


def random(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def cases() -> Iterator[Case]:
    rms_norm = torch.nn.functional.rms_norm
    tokens = 16384
    for hidden in (8192, 4096, 5120):
        x, weight, residual = random(tokens, hidden), random(hidden), random(tokens, hidden)
        compiled = torch.compile(lambda x, w, h=hidden: rms_norm(x, (h,), w, 1e-6))
        yield Case(
            f"rms_norm {tokens}x{hidden}",
            lambda x=x, weight=weight: ascend_kernels.rms_norm(x, weight),
            lambda x=x, weight=weight, h=hidden: rms_norm(x[:512].double(), (h,), weight.double(), 1e-6),
            "reduction",
            2 * x.nbytes,
            {"torch.compile": lambda x=x, weight=weight, f=compiled: f(x, weight)},
            rows=512,
        )

        def add(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            total = x + residual
            return rms_norm(total, (total.shape[-1],), weight, 1e-6), total

        together = torch.compile(add)
        yield Case(
            f"add_rms_norm {tokens}x{hidden}",
            lambda x=x, r=residual, weight=weight: ascend_kernels.add_rms_norm(x, r, weight),
            lambda x=x, r=residual, weight=weight: add(x[:512].double(), r[:512].double(), weight.double()),
            "reduction",
            4 * x.nbytes,
            {"torch.compile": lambda x=x, r=residual, weight=weight, f=together: f(x, r, weight)},
            rows=512,
        )
    heads = random(tokens, 40, 128)
    per_head = torch.compile(lambda x: rms_norm(x, (128,), None, 1e-6))
    yield Case(
        "rms_norm heads 16384x40x128",
        lambda: ascend_kernels.rms_norm(heads),
        lambda: rms_norm(heads[:512].double(), (128,), None, 1e-6),
        "reduction",
        2 * heads.nbytes,
        {"torch.compile": lambda: per_head(heads)},
        rows=512,
    )
    x, gate, weight = random(tokens * 32, 128), random(tokens * 32, 128), random(128)

    def gated(x: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return rms_norm(x, (128,), weight, 1e-6) * torch.nn.functional.silu(gate)

    compiled_gated = torch.compile(lambda x, g, w: gated(x.float(), g.float(), w.float()).to(x.dtype))
    yield Case(
        "layer_norm_gated 524288x128",
        lambda: ascend_kernels.layer_norm_gated(x, weight, gate=gate),
        lambda: gated(x[:4096].double(), gate[:4096].double(), weight.double()),
        "reduction",
        3 * x.nbytes,
        {"torch.compile": lambda: compiled_gated(x, gate, weight)},
        rows=4096,
    )
    yield split_case(tokens)


def split_case(tokens: int) -> Case:
    """Query, key and value of Qwen3's heads out of one projection."""
    heads, key_heads, size = 32, 8, 128
    qkv, q_weight, k_weight = random(tokens, (heads + 2 * key_heads) * size), random(size), random(size)
    angles = torch.rand(tokens, size // 2, device="cuda") * 6.3
    cos, sin = angles.cos(), angles.sin()

    def whole(qkv: torch.Tensor, *others: torch.Tensor) -> tuple[torch.Tensor, ...]:
        q_weight, k_weight, cos, sin = others
        query, key, value = qkv.unflatten(-1, (-1, size)).split([heads, key_heads, key_heads], 1)
        turned = []
        for part, weight in ((query, q_weight), (key, k_weight)):
            first, second = rms_norm(part, (size,), weight, 1e-6).chunk(2, -1)
            c, s = cos[:, None], sin[:, None]
            turned.append(torch.cat((first * c - second * s, second * c + first * s), -1))
        return *turned, value.clone(memory_format=torch.contiguous_format)

    rms_norm = torch.nn.functional.rms_norm
    arguments = (q_weight, k_weight, cos, sin)
    compiled = torch.compile(
        lambda qkv, *a: tuple(part.to(qkv.dtype) for part in whole(qkv.float(), *(x.float() for x in a)))
    )
    return Case(
        f"split_qkv_norm_rope {tokens}x(32+8+8)x128",
        lambda: ascend_kernels.split_qkv_norm_rope(qkv, heads, key_heads, *arguments)[:3],
        lambda: whole(qkv[:512].double(), q_weight.double(), k_weight.double(), cos[:512].double(), sin[:512].double()),
        "reduction",
        2 * qkv.nbytes + cos.nbytes + sin.nbytes,
        {"torch.compile": lambda: compiled(qkv, *arguments)},
        rows=512,
    )
