# SPDX-License-Identifier: Apache-2.0
"""npu_mla_prolog against the steps of the vendor's goldens, in float64 with bfloat16 where they round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from .calls import call
from .oracle import Array, as_float64

HE, HCQ, HCKV, HEADS, D, DR = 96, 64, 256, 3, 32, 16
BLOCKS, BLOCK = 5, 16


def rounded(values: Array) -> Array:
    """To bfloat16 and back."""
    return as_float64(torch.from_numpy(values).bfloat16())


def int8(values: Array) -> Array:
    return np.clip(np.round(values), -128, 127)


def norm(values: Array, gamma: Tensor, epsilon: float) -> Array:
    return values / np.sqrt((values**2).mean(-1, keepdims=True) + epsilon) * as_float64(gamma)


@dataclass
class Case:
    """Inputs of one scenario; weights: 0 float, 1 uq_qr int8, 2 int8; cache: 0 float, 1 tensor, 2 channel, 3 tile."""

    weights: int
    cache: int
    lead: tuple[int, ...] = (2, 3)
    tensors: dict[str, Tensor] = field(init=False)
    scales: dict[str, Tensor] = field(init=False)

    def __post_init__(self) -> None:
        def matrix(name: str, *shape: int) -> Tensor:
            quantised = self.weights == 2 or (self.weights == 1 and name == "weight_uq_qr")
            if quantised and name != "weight_uk":
                return torch.randint(-100, 101, shape).to(torch.int8)
            return (torch.randn(shape) / shape[-2] ** 0.5).bfloat16()

        tokens = int(np.prod(self.lead))
        self.tensors = {
            "token_x": matrix("token_x", *self.lead, HE),
            "weight_dq": matrix("weight_dq", HE, HCQ),
            "weight_uq_qr": matrix("weight_uq_qr", HCQ, HEADS * (D + DR)),
            "weight_uk": matrix("weight_uk", HEADS, D, HCKV),
            "weight_dkv_kr": matrix("weight_dkv_kr", HE, HCKV + DR),
            "rmsnorm_gamma_cq": torch.rand(HCQ).add(0.5).bfloat16(),
            "rmsnorm_gamma_ckv": torch.rand(HCKV).add(0.5).bfloat16(),
            "rope_sin": torch.rand(*self.lead, DR).bfloat16(),
            "rope_cos": torch.rand(*self.lead, DR).bfloat16(),
        }
        self.scales = {}
        if self.weights == 2:
            self.scales["dequant_scale_x"] = torch.rand(tokens, 1) / 50
            self.scales["dequant_scale_w_dq"] = torch.rand(1, HCQ) / 50
            self.scales["dequant_scale_w_dkv_kr"] = torch.rand(1, HCKV + DR) / 50
        if self.weights:
            self.scales["dequant_scale_w_uq_qr"] = torch.rand(1, HEADS * (D + DR)) / 100
            self.scales["smooth_scales_cq"] = torch.rand(1, HCQ) + 0.5
        if self.cache == 1:
            self.scales["quant_scale_ckv"] = torch.tensor([21.0])
        if self.cache == 2:
            self.scales["quant_scale_ckv"] = torch.rand(1, HCKV) * 40
            self.scales["quant_scale_ckr"] = torch.rand(1, DR) * 40

    def caches(self, lead: tuple[int, ...] = (BLOCKS, BLOCK)) -> tuple[Tensor, Tensor]:
        kind = torch.int8 if self.cache else torch.bfloat16
        if self.cache == 3:
            width = HCKV + 2 * DR + HCKV // 128 * 4
            return torch.full((*lead, 1, width), 7, dtype=kind), torch.empty(0).bfloat16()
        rope = torch.int8 if self.cache == 2 else torch.bfloat16
        return torch.full((*lead, 1, HCKV), 7, dtype=kind), torch.full((*lead, 1, DR), 7, dtype=rope)

    def _down(self, name: str) -> Array:
        x, weight = as_float64(self.tensors["token_x"]).reshape(-1, HE), as_float64(self.tensors[name])
        if self.weights < 2:
            return rounded(x @ weight)
        return (
            x
            @ weight
            * as_float64(self.scales["dequant_scale_x"])
            * as_float64(self.scales[f"dequant_scale_{name[0]}{name[6:]}"])
        )

    def _rotate(self, values: Array) -> Array:
        """[T, N, DR]: pairs to halves, then rotated by halves."""
        cos, sin = (as_float64(self.tensors[n]).reshape(-1, 1, DR) for n in ("rope_cos", "rope_sin"))
        halves = np.concatenate((values[..., ::2], values[..., 1::2]), -1)
        first, second = np.split(halves, 2, -1)
        return halves * cos + np.concatenate((-second, first), -1) * sin

    def query(self, scale: float = 1.0) -> dict[str, Array]:
        cq = norm(self._down("weight_dq"), self.tensors["rmsnorm_gamma_cq"], 1e-5) * scale
        result: dict[str, Array] = {}
        weight = as_float64(self.tensors["weight_uq_qr"])
        if self.weights == 0:
            result["norm"] = cq = rounded(cq)
            up = rounded(cq @ weight)
        else:
            smoothed = cq * as_float64(self.scales["smooth_scales_cq"])
            result["norm_scale"] = np.abs(smoothed).max(-1, keepdims=True) / 127
            result["norm"] = np.round(smoothed / result["norm_scale"])
            up = result["norm"] @ weight * result["norm_scale"] * as_float64(self.scales["dequant_scale_w_uq_qr"])
        up = up.reshape(-1, HEADS, D + DR)
        uk = as_float64(self.tensors["weight_uk"])
        result["query"] = rounded(np.einsum("tnd,ndh->tnh", rounded(up[..., :D]), uk))
        result["rope"] = rounded(self._rotate(up[..., D:]))
        if self.cache == 1:
            result["scale"] = np.abs(result["query"]).max(-1, keepdims=True) / 127
            result["query"] = int8(result["query"] / result["scale"])
            result["rope"] = result["rope"] * as_float64(self.scales["quant_scale_ckv"])[0] / result["scale"]
        return result

    def keys(self, scale: float = 1.0, clip: float = 1.0) -> dict[str, Array]:
        both = self._down("weight_dkv_kr")
        latent = norm(both[:, :HCKV], self.tensors["rmsnorm_gamma_ckv"], 1e-5) * scale
        rope = self._rotate(both[:, None, HCKV:])[:, 0]
        if self.cache == 3:
            tiles = latent.reshape(-1, HCKV // 128, 128)
            most = np.maximum(np.abs(tiles).max(-1, keepdims=True), 1e-4) * clip
            stored = int8(np.clip(tiles, -most, most) / (most / 127)).reshape(-1, HCKV)
            return {"latent": stored, "rope": rope, "scale": most[..., 0] / 127}
        if self.cache == 2:
            latent = int8(latent * as_float64(self.scales["quant_scale_ckv"]))
            return {"latent": latent, "rope": int8(rope * as_float64(self.scales["quant_scale_ckr"]))}
        if self.cache == 1:
            return {"latent": int8(latent * 21.0), "rope": rope}
        return {"latent": latent, "rope": rope}


def close(actual: Tensor, expected: Array, tolerance: float = 2e-2) -> None:
    """Integers may differ by one where float32 and float64 round to different sides."""
    assert actual.numel() == expected.size
    rtol, atol = (0.0, 1.0) if actual.dtype == torch.int8 else (tolerance, tolerance)
    np.testing.assert_allclose(as_float64(actual).reshape(expected.shape), expected, rtol=rtol, atol=atol)


def rows(cache: Tensor, slots: list[int], fractal: bool = False) -> Tensor:
    """Tokens at ``slots`` of a cache [blocks, block_size, 1, D] (or of that memory as fractal)."""
    if fractal:
        unit = 32 // cache.element_size()
        cache = cache.view(cache.shape[0], -1, cache.shape[1], unit).transpose(1, 2).reshape(cache.shape)
    return cache.reshape(-1, cache.shape[-1])[slots]


SLOTS = [70, 3, 44, 45, 16, 9]
VERSION_MODES = {
    "float": (0, 0), "uq_qr": (1, 0), "uq_qr-channel": (1, 2), "uq_qr-tile": (1, 3),
    "int8": (2, 0), "int8-tensor": (2, 1), "int8-tile": (2, 3),
}  # fmt: skip


@pytest.mark.parametrize("lead", [(6,), (2, 3)], ids=["TND", "BSND"])
@pytest.mark.parametrize("scenario", VERSION_MODES)
def test_third_version(scenario: str, lead: tuple[int, ...]) -> None:
    case = Case(*VERSION_MODES[scenario], lead)
    kv, kr = case.caches()
    tile = case.cache == 3
    query, rope, scale, cq, cq_scale = call(
        "npu::npu_mla_prolog_v3", **case.tensors, kv_cache=kv, kr_cache=kr, **case.scales,
        cache_index=torch.tensor(SLOTS).view(lead), query_norm_flag=True, weight_quant_mode=case.weights,
        kv_cache_quant_mode=case.cache, query_quant_mode=int(case.cache == 1), ckvkr_repo_mode=int(tile),
        quant_scale_repo_mode=int(tile), k_nope_clip_alpha=torch.tensor([0.75]) if tile else None,
        qc_qr_scale=1.5, kc_scale=0.5,
    )  # fmt: skip
    expected, keys = case.query(1.5), case.keys(0.5, 0.75)
    assert query.shape == (*lead, HEADS, HCKV)
    assert cq.shape == (*lead, HCQ)
    close(query, expected["query"])
    close(rope, expected["rope"])
    close(cq, expected["norm"])
    assert scale.numel() == (6 * HEADS if case.cache == 1 else 0)
    if scale.numel():
        close(scale, expected["scale"], 1e-2)
    if case.weights:
        close(cq_scale, expected["norm_scale"], 1e-4)
    if tile:
        packed = rows(kv, SLOTS)
        parts = packed.split((HCKV, 2 * DR, HCKV // 128 * 4), -1)
        close(parts[0], keys["latent"])
        close(parts[1].contiguous().view(torch.bfloat16), keys["rope"])
        close(parts[2].contiguous().view(torch.float32), keys["scale"], 1e-2)
    else:
        close(rows(kv, SLOTS), keys["latent"])
        close(rows(kr, SLOTS), keys["rope"])
    untouched = torch.ones(BLOCKS * BLOCK, dtype=torch.bool)
    untouched[SLOTS] = False
    assert (kv.view(BLOCKS * BLOCK, -1)[untouched] == 7).all()


@pytest.mark.parametrize("mode", ["PA_NZ", "PA_BLK_BSND", "PA_BLK_NZ", "BSND", "TND"])
def test_cache_modes(mode: str) -> None:
    """In the block modes two requests of 20 and 3 tokens fill blocks 4, 2 and 1."""
    case = Case(0, 0, (23,) if mode != "BSND" else (1, 23))
    kv, kr = case.caches({"BSND": (1, 23), "TND": (23,)}.get(mode, (BLOCKS, BLOCK)))
    lengths = torch.tensor([20, 23]).int()
    slots = torch.randperm(BLOCKS * BLOCK)[:23]
    index: Tensor | None = slots
    if mode.startswith("PA_BLK"):
        index = torch.tensor([4, 2, 1])
        slots = torch.tensor([*range(64, 80), *range(32, 36), *range(16, 19)])
    elif not mode.startswith("PA"):
        index, slots = None, torch.arange(23)
    _, _, _, *after = call(
        "npu::npu_mla_prolog_v3_functional", **case.tensors, kv_cache=kv, kr_cache=kr, cache_index=index,
        actual_seq_len=lengths if mode.startswith("PA_BLK") else None, cache_mode=mode,
    )[2:]  # fmt: skip
    keys = case.keys()
    close(rows(after[-2], slots.tolist(), mode.endswith("NZ")), keys["latent"])
    close(rows(after[-1], slots.tolist(), mode.endswith("NZ")), keys["rope"])
    assert (kv == 7).all()


@pytest.mark.parametrize(("weights", "cache"), [(0, 0), (1, 0), (1, 2)], ids=["float", "uq_qr", "uq_qr-channel"])
def test_first_version(weights: int, cache: int) -> None:
    case = Case(weights, cache)
    kv, kr = case.caches()
    query, rope, *after = call(
        "npu::npu_mla_prolog", **case.tensors, cache_index=torch.tensor(SLOTS).view(2, 3), kv_cache=kv, kr_cache=kr,
        **case.scales,
    )  # fmt: skip
    expected, keys = case.query(), case.keys()
    close(query, expected["query"])
    close(rope, expected["rope"])
    assert after[0] is kv
    assert after[1] is kr
    close(rows(kv, SLOTS), keys["latent"])
    close(rows(kr, SLOTS), keys["rope"])


@pytest.mark.parametrize("cache", [0, 1], ids=["float-cache", "int8-cache"])
def test_second_version_takes_int8_tokens(cache: int) -> None:
    """The page's quant_scale_ckv is [1, Hckv]; the golden uses its first element."""
    case = Case(2, cache)
    kv, kr = case.caches()
    scales: dict[str, Any] = dict(case.scales)
    if cache:
        scales["quant_scale_ckv"] = torch.tensor([[21.0] + [0.0] * (HCKV - 1)])
    query, rope, _, _, scale = call(
        "npu::npu_mla_prolog_v2", **case.tensors, cache_index=torch.tensor(SLOTS).view(2, 3), kv_cache=kv, kr_cache=kr,
        **scales,
    )  # fmt: skip
    expected, keys = case.query(), case.keys()
    close(query, expected["query"])
    close(rope, expected["rope"])
    close(rows(kv, SLOTS), keys["latent"])
    close(rows(kr, SLOTS), keys["rope"])
    assert scale.shape == ((6, HEADS, 1) if cache else (1,))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cache_mode": "BNSD"}, "cache_mode is 'BNSD'"),
        ({"kv_cache_quant_mode": 2}, r"query_quant_mode\) is \(0, 2, 0\)"),
        ({"ckvkr_repo_mode": 1}, "ckvkr_repo_mode"),
        ({"cache_index": None}, "cache_index is None"),
        ({"cache_index": torch.full((6,), 80)}, "slot 0 is 80; the hardware allows slots below 80"),
        ({"cache_index": torch.zeros(6).int()}, "cache_index is int32"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    case = Case(0, 0, (6,))
    kv, kr = case.caches()
    given: dict[str, Any] = {**case.tensors, "kv_cache": kv, "kr_cache": kr, "cache_index": torch.tensor(SLOTS)}
    torch.ops.npu.npu_mla_prolog_v3(**given)
    with pytest.raises(RuntimeError, match=message):
        torch.ops.npu.npu_mla_prolog_v3(**(given | changes))
