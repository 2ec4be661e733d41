# SPDX-License-Identifier: Apache-2.0
"""What npu_mla_prolog computes, in the modes that Atlas A2 and A3 have.

    c_q  = qc_scale * RmsNorm(x W_dq)      q_nope | q_pe = c_q W_uq_qr       query = q_nope W_uk per head
    c_kv | k_pe = x W_dkv_kr               c_kv = kc_scale * RmsNorm(c_kv)   rope parts: pairs to halves, rotated

Every product and norm is float32 and rounds to bfloat16 where the vendor's golden does. With int8 weights their
operand is int8 with a scale per token, and the scales of both multiply the integer result.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.integer_matmul import int8_matmul
from ascend_sim.references.mla.caches import block_slots, saturate, write_paged
from ascend_sim.references.norm import rms_norm_float
from ascend_sim.references.rotary import rotate_half

WEIGHTS_FLOAT, WEIGHTS_UQ_QR, WEIGHTS_INT8 = range(3)
"""weight_quant_mode: none, weight_uq_qr alone, or all but weight_uk are int8."""
CACHE_FLOAT, CACHE_PER_TENSOR, CACHE_PER_CHANNEL, CACHE_PER_TILE = range(4)
"""kv_cache_quant_mode; per tile, a token is latent int8, rope bfloat16 and scales float32 in one row of bytes."""
_LEAST_TILE, _LEAST = 1e-4, 1e-12


@dataclass(frozen=True, slots=True)
class Quantised:
    """int8 rows and their float32 scales [..., 1]."""

    values: Tensor
    scale: Tensor


def quantise_rows(values: Tensor) -> Quantised:
    """Symmetric int8 of the last dimension: ``scale = max |x| / 127``."""
    scale = values.abs().amax(-1, keepdim=True).clamp_(min=_LEAST) / 127
    return Quantised(saturate(values / scale), scale)


@dataclass(frozen=True, slots=True)
class Prolog:
    """One call; the names are those of npu_mla_prolog_v3's arguments."""

    op: str
    token_x: Tensor
    weight_dq: Tensor
    weight_uq_qr: Tensor
    weight_uk: Tensor
    weight_dkv_kr: Tensor
    rmsnorm_gamma_cq: Tensor
    rmsnorm_gamma_ckv: Tensor
    rope_sin: Tensor
    rope_cos: Tensor
    kv_cache: Tensor
    kr_cache: Tensor
    cache_index: Tensor | None
    dequant_scale_x: Tensor | None
    dequant_scale_w_dq: Tensor | None
    dequant_scale_w_uq_qr: Tensor | None
    dequant_scale_w_dkv_kr: Tensor | None
    quant_scale_ckv: Tensor | None
    quant_scale_ckr: Tensor | None
    smooth_scales_cq: Tensor | None
    rmsnorm_epsilon_cq: float
    rmsnorm_epsilon_ckv: float
    cache_mode: str
    weight_quant_mode: int
    kv_cache_quant_mode: int
    query_quant_mode: int
    actual_seq_len: Tensor | None = None
    k_nope_clip_alpha: Tensor | None = None
    tile_size: int = 128
    qc_qr_scale: float = 1.0
    kc_scale: float = 1.0

    def query(self) -> tuple[Tensor, Tensor, Quantised | None, Quantised | Tensor]:
        """Query [T, N, Hckv] and its rope part [T, N, Dr], both bfloat16; the query as int8, if asked for; c_q."""
        latent = self._down(self.weight_dq, self.dequant_scale_w_dq, "dequant_scale_w_dq")
        normed, _ = rms_norm_float(latent, self.rmsnorm_gamma_cq, self.rmsnorm_epsilon_cq)
        normed.mul_(self.qc_qr_scale)
        norm: Quantised | Tensor
        if self.weight_quant_mode == WEIGHTS_FLOAT:
            norm = normed.bfloat16()
            up = (norm.float() @ self.weight_uq_qr.float()).bfloat16().float()
        else:
            norm = quantise_rows(normed if self.smooth_scales_cq is None else normed * self.smooth_scales_cq)
            scale = self._needed("dequant_scale_w_uq_qr", self.dequant_scale_w_uq_qr)
            up = int8_matmul(norm.values, self.weight_uq_qr).mul_(norm.scale).mul_(scale)
        heads, size, _ = self.weight_uk.shape
        nope, rope = up.view(up.shape[0], heads, -1).tensor_split((size,), -1)
        absorbed = torch.bmm(nope.bfloat16().float().transpose(0, 1), self.weight_uk.float()).transpose(0, 1)
        query, turned = absorbed.bfloat16(), self._rotate(rope).bfloat16()
        if not self.query_quant_mode:
            return query, turned, None, norm
        rows = quantise_rows(query.float())
        scale = self._needed("quant_scale_ckv", self.quant_scale_ckv).flatten()[0]
        return query, (turned.float() * scale / rows.scale).bfloat16(), rows, norm

    def write_caches(self) -> None:
        """Write the latent and rope parts of the keys."""
        if not self.kv_cache.numel():
            return
        both = self._down(self.weight_dkv_kr, self.dequant_scale_w_dkv_kr, "dequant_scale_w_dkv_kr")
        size = self.rmsnorm_gamma_ckv.shape[0]
        latent, _ = rms_norm_float(both[:, :size], self.rmsnorm_gamma_ckv, self.rmsnorm_epsilon_ckv)
        rope = self._rotate(both[:, None, size:])[:, 0]
        for cache, tokens in zip(
            (self.kv_cache, self.kr_cache), self._stored(latent * self.kc_scale, rope), strict=True
        ):
            if tokens is not None:
                self._write(cache, tokens[:, None])

    def _down(self, weight: Tensor, scale: Tensor | None, name: str) -> Tensor:
        """``x W`` in float32."""
        x = self.token_x.flatten(0, -2)
        if self.weight_quant_mode != WEIGHTS_INT8:
            return (x.float() @ weight.float()).bfloat16().float()
        rows = self._needed("dequant_scale_x", self.dequant_scale_x)
        return int8_matmul(x, weight).mul_(rows).mul_(self._needed(name, scale))

    def _rotate(self, x: Tensor) -> Tensor:
        """[T, N, Dr] in float32, from pairs to halves and rotated."""
        cos, sin = (t.flatten(0, -2).float().unsqueeze(1) for t in (self.rope_cos, self.rope_sin))
        halves = torch.cat((x[..., ::2], x[..., 1::2]), -1)
        return halves * cos + rotate_half(halves) * sin

    def _stored(self, latent: Tensor, rope: Tensor) -> tuple[Tensor, Tensor | None]:
        """What goes to kv_cache and, unless both lie in one row, to kr_cache."""
        mode = self.kv_cache_quant_mode
        if mode == CACHE_FLOAT:
            return latent.bfloat16(), rope.bfloat16()
        if mode == CACHE_PER_TENSOR:
            return saturate(
                latent * self._needed("quant_scale_ckv", self.quant_scale_ckv).flatten()[0]
            ), rope.bfloat16()
        if mode == CACHE_PER_CHANNEL:
            scales = self._needed("quant_scale_ckv", self.quant_scale_ckv), self.quant_scale_ckr
            return saturate(latent * scales[0]), saturate(rope * self._needed("quant_scale_ckr", scales[1]))
        tiles = latent.unflatten(-1, (-1, self.tile_size))
        most = tiles.abs().amax(-1, keepdim=True).clamp_(min=_LEAST_TILE)
        if self.k_nope_clip_alpha is not None:
            most = most * self.k_nope_clip_alpha
        scale = most / 127
        packed = saturate(tiles.clamp(-most, most) / scale).flatten(1)
        parts = (packed, rope.bfloat16().contiguous().view(torch.int8), scale.squeeze(-1).contiguous().view(torch.int8))
        return torch.cat(parts, -1), None

    def _write(self, cache: Tensor, tokens: Tensor) -> None:
        mode, index = self.cache_mode, self.cache_index
        if mode in ("BSND", "TND"):
            cache.copy_(tokens.view(cache.shape).to(cache.dtype))
            return
        if index is None:
            raise limits.refuse(self.op, "cache_index", None, f"a tensor for cache_mode {mode!r}")
        slots = index.flatten()
        if mode.startswith("PA_BLK"):
            slots = block_slots(index * cache.shape[1], self._lengths(), cache.shape[1])
        write_paged(self.op, cache, tokens, slots, mode)

    def _lengths(self) -> list[int]:
        """Tokens of each request."""
        if self.token_x.dim() == 3:
            return [self.token_x.shape[1]] * self.token_x.shape[0]
        sums = self._needed("actual_seq_len", self.actual_seq_len)
        return [int(n) for n in sums.diff(prepend=sums.new_zeros(1)).tolist()]

    def _needed(self, name: str, tensor: Tensor | None) -> Tensor:
        if tensor is None:
            modes = f"weight_quant_mode {self.weight_quant_mode}, kv_cache_quant_mode {self.kv_cache_quant_mode}"
            raise limits.refuse(self.op, name, None, f"a tensor with {modes}, cache_mode {self.cache_mode!r}")
        return tensor
