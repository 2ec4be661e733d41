"""Causal convolution, and lightning attention."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from ascend_kernels.ops.mamba.lightning_attention.naive import lightning_attention_naive
from run_gpu.case import Case

TOKENS = 65536


def convolution() -> Case:
    channels, width, checked = 8192, 4, 512
    x = torch.randn(TOKENS, channels, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(channels, width, device="cuda", dtype=torch.bfloat16)
    state = torch.zeros(1, width - 1, channels, device="cuda", dtype=torch.bfloat16)
    starts, slot = torch.tensor([0, TOKENS], device="cuda"), torch.zeros(1, device="cuda", dtype=torch.int32)
    fresh = torch.zeros(1, device="cuda", dtype=torch.bool)

    def reference() -> torch.Tensor:
        padded = torch.nn.functional.pad(x[:checked].double().t()[None], (width - 1, 0))
        return torch.nn.functional.silu(
            torch.nn.functional.conv1d(padded, weight.double()[:, None], groups=channels)[0].t()
        )

    peers = {}
    try:
        from fla.modules.causal_conv1d import causal_conv1d
    except ModuleNotFoundError:
        pass
    else:
        peers["flash-linear-attention"] = lambda: causal_conv1d(
            x[None], weight, activation="silu", output_final_state=True
        )
    return Case(
        f"causal_conv1d T{TOKENS} D{channels} W{width}",
        lambda: ascend_kernels.causal_conv1d(x, weight, None, state, starts, slot, fresh),
        reference,
        "reduction",
        2 * x.nbytes,
        peers,
        rows=checked,
    )


def lightning() -> Case:
    heads, channels, checked = 32, 128, 256
    q, k, v = (torch.randn(1, TOKENS, heads, channels, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    k = torch.nn.functional.normalize(k, dim=-1)
    slopes = 8 / heads * (1 - 1 / heads) * torch.arange(heads, device="cuda").float()
    scale = channels**-0.5

    def reference() -> torch.Tensor:
        wide = [tensor[0, :checked].double() for tensor in (q, k, v)]
        return lightning_attention_naive(*wide, slopes.double(), None, torch.tensor([0, checked]), scale)[0]

    peers = {}
    try:
        from fla.ops.lightning_attn import chunk_lightning_attn
    except ModuleNotFoundError:
        pass
    else:
        peers["flash-linear-attention"] = lambda: chunk_lightning_attn(
            q, k, v, layer_idx=1, num_layers=heads, output_final_state=True
        )
    return Case(
        f"lightning_attention B1 T{TOKENS} H{heads} D{channels}",
        lambda: ascend_kernels.lightning_attention(q, k, v, slopes, scale)[0][0],
        reference,
        "recurrence",
        4 * q.nbytes,
        peers,
        rows=checked,
    )


def cases() -> Iterator[Case]:
    yield convolution()
    yield lightning()
