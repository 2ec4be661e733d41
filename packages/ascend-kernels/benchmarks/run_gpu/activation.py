"""The activations and their quantisation."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from run_gpu.case import Case

functional = torch.nn.functional


def random(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.chunk(2, -1)
    return functional.silu(gate) * up


def in_fp32(function):
    return torch.compile(lambda x: function(x.float()).to(x.dtype))


def quantised(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = x.abs().amax(-1, keepdim=True) / 127
    return torch.round(x / scale).clamp(-127, 127).to(torch.int8), scale[:, 0]


def cases() -> Iterator[Case]:
    tokens = 16384
    for columns in (8192, 14336):
        x = random(tokens, 2 * columns)
        compiled = in_fp32(silu_and_mul)
        peers = {"torch.compile": lambda x=x, f=compiled: f(x)}
        try:
            from liger_kernel.ops.swiglu import swiglu_forward
        except ModuleNotFoundError:
            pass
        else:
            gate, up = (part.contiguous() for part in x.chunk(2, -1))
            peers["Liger"] = lambda gate=gate, up=up: swiglu_forward(gate, up)
        yield Case(
            f"swiglu {tokens}x{columns}",
            lambda x=x: ascend_kernels.swiglu(x),
            lambda x=x: silu_and_mul(x[:512].double()),
            "elementwise",
            3 * x.nbytes // 2,
            peers,
            rows=512,
        )
    for columns in (8192, 2048):
        x = random(tokens, 2 * columns)
        fused = torch.compile(lambda x: quantised(silu_and_mul(x.float())))
        yield Case(
            f"swiglu_quant {tokens}x{columns}",
            lambda x=x: ascend_kernels.swiglu_quant(x)[1],
            lambda x=x: quantised(silu_and_mul(x[:512].double()))[1],
            "elementwise",
            x.nbytes + x.nbytes // 4,
            {"torch.compile": lambda x=x, f=fused: f(x)},
            rows=512,
        )
    x = random(tokens, 8192)
    alone = torch.compile(lambda x: quantised(x.float()))
    yield Case(
        f"dynamic_quant {tokens}x8192",
        lambda: ascend_kernels.dynamic_quant(x)[1],
        lambda: quantised(x[:512].double())[1],
        "elementwise",
        x.nbytes + x.nbytes // 2,
        {"torch.compile": lambda: alone(x)},
        rows=512,
    )
    for approximate in ("none", "tanh"):
        function = in_fp32(lambda x, a=approximate: functional.gelu(x, approximate=a))
        yield Case(
            f"gelu {approximate} {tokens}x8192",
            lambda a=approximate: ascend_kernels.gelu(x, a),
            lambda a=approximate: functional.gelu(x[:512].double(), approximate=a),
            "reduction",
            2 * x.nbytes,
            {"torch.compile": lambda f=function: f(x)},
            rows=512,
        )
    y = random(tokens, 8192)
    scaled = torch.compile(lambda x, y: (x.float() * 0.5 + y.float()).to(x.dtype))
    yield Case(
        f"muls_add {tokens}x8192",
        lambda: ascend_kernels.muls_add(x, y, 0.5),
        lambda: x[:512].double() * 0.5 + y[:512].double(),
        "elementwise",
        3 * x.nbytes,
        {"torch.compile": lambda: scaled(x, y)},
        rows=512,
    )
