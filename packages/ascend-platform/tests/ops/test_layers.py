"""vLLM's layers on the vendor's operators, against float64 formulas."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from vllm.config import VllmConfig, set_current_vllm_config

from vllm_ascend.ops.activation import AscendGeluAndMul, AscendSiluAndMul
from vllm_ascend.ops.layernorm import AscendGemmaRMSNorm, AscendRMSNorm
from vllm_ascend.ops.rotary import (
    AscendLlama3RotaryEmbedding,
    AscendRotaryEmbedding,
    AscendYaRNScalingRotaryEmbedding,
    operator_supports,
)

TOLERANCE = 1e-5
"""float32 results against float64, magnitudes around 1 to 10."""


@pytest.fixture(autouse=True)
def vllm_config():
    with set_current_vllm_config(VllmConfig()):
        yield


def rms(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    x = x.double()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight.double()


@pytest.mark.parametrize("with_residual", [False, True], ids=["plain", "residual"])
def test_rms_norm(with_residual: bool) -> None:
    torch.manual_seed(0)
    layer = AscendRMSNorm(48, eps=1e-5).npu()
    layer.weight.data.uniform_(0.5, 2)
    x, residual = torch.randn(5, 48), torch.randn(5, 48)
    if with_residual:
        y, summed = layer.forward_oot(x.npu(), residual.npu())
        assert torch.equal(summed.cpu(), x + residual)
        x = x + residual
    else:
        y = layer.forward_oot(x.npu())
    assert (y.cpu().double() - rms(x, layer.weight.cpu(), 1e-5)).abs().max() < TOLERANCE


def test_gemma_rms_norm_follows_reloaded_weights() -> None:
    torch.manual_seed(0)
    layer = AscendGemmaRMSNorm(32).npu()
    x = torch.randn(3, 32)
    for _ in range(2):
        weight = torch.randn(32) * 0.3
        address = layer.gamma.data_ptr()
        layer.weight.weight_loader(layer.weight, weight.npu())
        assert layer.gamma.data_ptr() == address, "captured graphs read the old address"
        y = layer.forward_oot(x.npu())
        assert (y.cpu().double() - rms(x, 1 + weight, 1e-6)).abs().max() < TOLERANCE


def test_gated_activations() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 64) * 3
    gate, up = x.double().chunk(2, -1)
    silu = AscendSiluAndMul().forward_oot(x.npu()).cpu().double()
    assert (silu - gate * torch.sigmoid(gate) * up).abs().max() < TOLERANCE
    exact = AscendGeluAndMul("none").forward_oot(x.npu()).cpu().double()
    assert (exact - 0.5 * gate * (1 + torch.erf(gate / 2**0.5)) * up).abs().max() < TOLERANCE
    inner = (2 / torch.pi) ** 0.5 * (gate + 0.044715 * gate**3)
    approximate = AscendGeluAndMul("tanh").forward_oot(x.npu()).cpu().double()
    assert (approximate - 0.5 * gate * (1 + torch.tanh(inner)) * up).abs().max() < TOLERANCE
    assert F.gelu(gate).shape == exact.shape


def rotate(x: torch.Tensor, angle: torch.Tensor, rotary_dim: int, neox: bool, factor: float = 1.0) -> torch.Tensor:
    """The definition on [tokens, heads, size] with angles [tokens, rotary_dim / 2]."""
    x, y = x.double(), x.double().clone()
    cos, sin = angle.cos()[:, None] * factor, angle.sin()[:, None] * factor
    half = rotary_dim // 2
    first, second = (
        (slice(0, half), slice(half, rotary_dim)) if neox else (slice(0, rotary_dim, 2), slice(1, rotary_dim, 2))
    )
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., second] * cos + x[..., first] * sin
    return y


@pytest.mark.parametrize("neox", [True, False], ids=["neox", "interleaved"])
@pytest.mark.parametrize("rotary_dim", [32, 16, 24], ids=["whole", "partial", "not-a-multiple"])
def test_rotary_embedding_of_strided_query_and_key(rotary_dim: int, neox: bool) -> None:
    torch.manual_seed(0)
    size, tokens = 32, 6
    layer = AscendRotaryEmbedding(size, rotary_dim, 64, 10000.0, neox, torch.float32).npu()
    positions = torch.tensor([0, 1, 5, 63, 7, 7])
    fused = torch.randn(tokens, (4 + 2 + 2) * size)
    query, key, _ = fused.npu().split([4 * size, 2 * size, 2 * size], -1)
    rotated = layer.forward_oot(positions.npu(), query, key)
    frequency = 10000.0 ** (-torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim)
    angle = positions.double()[:, None] * frequency
    for result, source in zip(rotated, (query, key)):
        expected = rotate(source.cpu().reshape(tokens, -1, size), angle, rotary_dim, neox).reshape(tokens, -1)
        assert (result.cpu().double() - expected).abs().max() < 5e-5


def test_operator_limit_is_in_bytes() -> None:
    assert operator_supports(32, torch.bfloat16)
    assert operator_supports(16, torch.float32)
    assert not operator_supports(16, torch.bfloat16)
    assert not operator_supports(80, torch.float16)


def test_scaled_embeddings_rotate_by_their_own_tables() -> None:
    torch.manual_seed(0)
    size = 32
    llama3 = AscendLlama3RotaryEmbedding(size, size, 64, 10000.0, True, torch.float32, 8.0, 1.0, 4.0, 16)
    yarn = AscendYaRNScalingRotaryEmbedding(size, size, 16, 10000.0, True, 4.0, torch.float32)
    positions = torch.tensor([0, 3, 40])
    x = torch.randn(3, 2 * size)
    frequency = 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    wave = 2 * torch.pi / frequency
    # Llama 3: wavelengths above 16 / 1 divided by 8, below 16 / 4 kept, between blended.
    smooth = ((16 / wave - 1) / (4 - 1)).clamp(0, 1)
    scaled = (1 - smooth) * frequency / 8 + smooth * frequency
    expected = rotate(x.view(3, 2, size), positions.double()[:, None] * scaled, size, True).reshape(3, -1)
    query, _ = llama3.npu().forward_oot(positions.npu(), x.npu(), x.npu())
    assert (query.cpu().double() - expected).abs().max() < 5e-5
    # YaRN multiplies cos and sin by 0.1 * ln(factor) + 1; position 0 shows it alone.
    query, _ = yarn.npu().forward_oot(positions.npu(), x.npu(), x.npu())
    factor = 0.1 * torch.log(torch.tensor(4.0, dtype=torch.float64)) + 1
    assert (query.cpu()[0].double() - x[0].double() * factor).abs().max() < 5e-5
