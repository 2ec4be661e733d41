# SPDX-License-Identifier: Apache-2.0
"""npu_mla_prolog in its versions. The first two tell the quantisation by dtypes, the third by modes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.mla.prolog import (
    CACHE_FLOAT,
    CACHE_PER_CHANNEL,
    CACHE_PER_TENSOR,
    CACHE_PER_TILE,
    WEIGHTS_FLOAT,
    WEIGHTS_INT8,
    WEIGHTS_UQ_QR,
    Prolog,
    Quantised,
)
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc

_V1, _V2, _V3 = "npu_mla_prolog", "npu_mla_prolog_v2", "npu_mla_prolog_v3"
_POSITIONAL = [
    "token_x",
    "weight_dq",
    "weight_uq_qr",
    "weight_uk",
    "weight_dkv_kr",
    "rmsnorm_gamma_cq",
    "rmsnorm_gamma_ckv",
    "rope_sin",
    "rope_cos",
]
_OPTIONAL = {
    "dequant_scale_x": None,
    "dequant_scale_w_dq": None,
    "dequant_scale_w_uq_qr": None,
    "dequant_scale_w_dkv_kr": None,
    "quant_scale_ckv": None,
    "quant_scale_ckr": None,
    "smooth_scales_cq": None,
    "rmsnorm_epsilon_cq": 1e-5,
    "rmsnorm_epsilon_ckv": 1e-5,
    "cache_mode": "PA_BSND",
}
_V3_OPTIONAL = _OPTIONAL | {
    "cache_index": None,
    "actual_seq_len": None,
    "k_nope_clip_alpha": None,
    "weight_quant_mode": WEIGHTS_FLOAT,
    "kv_cache_quant_mode": CACHE_FLOAT,
    "query_quant_mode": 0,
    "tile_size": 128,
    "qc_qr_scale": 1.0,
    "kc_scale": 1.0,
}
_MODES = ("PA_BSND", "PA_NZ")
_V3_MODES = (*_MODES, "PA_BLK_BSND", "PA_BLK_NZ", "BSND", "TND")
_COMBINATIONS = {
    (WEIGHTS_FLOAT, CACHE_FLOAT, 0),
    (WEIGHTS_UQ_QR, CACHE_FLOAT, 0),
    (WEIGHTS_UQ_QR, CACHE_PER_CHANNEL, 0),
    (WEIGHTS_UQ_QR, CACHE_PER_TILE, 0),
    (WEIGHTS_INT8, CACHE_FLOAT, 0),
    (WEIGHTS_INT8, CACHE_PER_TENSOR, 1),
    (WEIGHTS_INT8, CACHE_PER_TILE, 0),
}
"""weight_quant_mode, kv_cache_quant_mode and query_quant_mode that go together on Atlas A2 and A3."""


def _shaped(work: Prolog, tensor: Tensor) -> Tensor:
    """[T, ...] with T as token_x has it."""
    return tensor.view(*work.token_x.shape[:-1], *tensor.shape[1:])


def _older(op: str, tensors: tuple[Tensor, ...], caches: tuple[Tensor, Tensor], index: Tensor, given: Any) -> Prolog:
    """A call of version 1 or 2."""
    x, uq_qr = tensors[0], tensors[2]
    weights = WEIGHTS_INT8 if x.dtype == torch.int8 else WEIGHTS_UQ_QR if uq_qr.dtype == torch.int8 else WEIGHTS_FLOAT
    cache = CACHE_FLOAT if caches[0].dtype != torch.int8 else CACHE_PER_CHANNEL
    if weights == WEIGHTS_INT8 and given.get("quant_scale_ckv") is not None:
        cache = CACHE_PER_TENSOR
    modes = {
        "weight_quant_mode": weights,
        "kv_cache_quant_mode": cache,
        "query_quant_mode": int(cache == CACHE_PER_TENSOR),
    }
    return _call(op, tensors, caches, _MODES, _OPTIONAL | given | modes | {"cache_index": index})


def _call(
    op: str, tensors: tuple[Tensor, ...], caches: tuple[Tensor, Tensor], modes: tuple[str, ...], given: dict[str, Any]
) -> Prolog:
    work = Prolog(
        op=op, kv_cache=caches[0], kr_cache=caches[1], **dict(zip(_POSITIONAL, tensors, strict=True)), **given
    )
    if work.cache_mode not in modes:
        raise limits.refuse(op, "cache_mode", repr(work.cache_mode), ", ".join(modes))
    combination = (work.weight_quant_mode, work.kv_cache_quant_mode, work.query_quant_mode)
    if combination not in _COMBINATIONS:
        names = "(weight_quant_mode, kv_cache_quant_mode, query_quant_mode)"
        raise limits.refuse(op, names, combination, sorted(_COMBINATIONS))
    return work


def _third(
    tensors: tuple[Tensor, ...], caches: tuple[Tensor, Tensor], given: dict[str, Any]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Version 3: the query, its rope part, the query's scales, c_q and its scales; [0] for what is not asked for."""
    given = dict(given)
    for name in [name for name in given if name.endswith("_dtype")]:
        if given.pop(name) is not None:
            raise limits.not_simulated(_V3, name, "given")
    want_norm = given.pop("query_norm_flag", False)
    together = given.pop("ckvkr_repo_mode", 0), given.pop("quant_scale_repo_mode", 0)
    work = _call(_V3, tensors, caches, _V3_MODES, _V3_OPTIONAL | given)
    per_tile = work.kv_cache_quant_mode == CACHE_PER_TILE
    if together != (int(per_tile), int(per_tile)):
        names, allowed = "(ckvkr_repo_mode, quant_scale_repo_mode)", f"{(int(per_tile),) * 2} with these modes"
        raise limits.refuse(_V3, names, together, allowed)
    if per_tile and work.cache_mode not in ("PA_BSND", "BSND", "TND"):
        raise limits.refuse(_V3, "cache_mode", repr(work.cache_mode), "PA_BSND, BSND, TND with kv_cache_quant_mode 3")
    if per_tile and caches[1].numel():
        raise limits.refuse(_V3, "kr_cache.shape", list(caches[1].shape), "an empty tensor with ckvkr_repo_mode 1")
    query, rope, rows, norm = work.query()
    work.write_caches()
    empty = torch.empty(0)
    scale = empty if rows is None else rows.scale
    query = query if rows is None else rows.values
    norm_values, norm_scale = (norm.values, norm.scale) if isinstance(norm, Quantised) else (norm, empty)
    if not want_norm:
        return _shaped(work, query), _shaped(work, rope), scale, norm_values.new_empty(0), empty
    return _shaped(work, query), _shaped(work, rope), scale, _shaped(work, norm_values), norm_scale


@reference(f"npu::{_V1}", source=f"{op_plugin_test('test_mla_prolog')}; {wheel_doc(_V1)}", grade=Grade.GOLDEN)
def npu_mla_prolog(
    token_x: Tensor,
    weight_dq: Tensor,
    weight_uq_qr: Tensor,
    weight_uk: Tensor,
    weight_dkv_kr: Tensor,
    rmsnorm_gamma_cq: Tensor,
    rmsnorm_gamma_ckv: Tensor,
    rope_sin: Tensor,
    rope_cos: Tensor,
    cache_index: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    **given: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the query, its rope part and both caches, which are written in place."""
    if token_x.dtype == torch.int8:
        raise limits.refuse(_V1, "token_x", "int8", "bfloat16; version 2 takes int8")
    tensors = (token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, rmsnorm_gamma_ckv)
    work = _older(_V1, (*tensors, rope_sin, rope_cos), (kv_cache, kr_cache), cache_index, given)
    query, rope, _, _ = work.query()
    work.write_caches()
    return _shaped(work, query), _shaped(work, rope), kv_cache, kr_cache


@reference(f"npu::{_V2}", source=f"{op_plugin_test('test_mla_prolog_v2')}; {wheel_doc(_V2)}", grade=Grade.GOLDEN)
def npu_mla_prolog_v2(
    token_x: Tensor,
    weight_dq: Tensor,
    weight_uq_qr: Tensor,
    weight_uk: Tensor,
    weight_dkv_kr: Tensor,
    rmsnorm_gamma_cq: Tensor,
    rmsnorm_gamma_ckv: Tensor,
    rope_sin: Tensor,
    rope_cos: Tensor,
    cache_index: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    **given: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """:func:`npu_mla_prolog` that also takes int8 tokens; the query's scales [T, N, 1] come last, [1] without them."""
    tensors = (token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, rmsnorm_gamma_ckv)
    work = _older(_V2, (*tensors, rope_sin, rope_cos), (kv_cache, kr_cache), cache_index, given)
    query, rope, rows, _ = work.query()
    work.write_caches()
    if rows is None:
        return _shaped(work, query), _shaped(work, rope), kv_cache, kr_cache, torch.zeros(1)
    return _shaped(work, rows.values), _shaped(work, rope), kv_cache, kr_cache, rows.scale


_V3_SOURCE = f"{op_plugin_test('test_mla_prolog_v3')}; " + "; ".join(
    cann_doc("ops-transformer", f"attention/mla_prolog_v3/{page}")
    for page in ("README.md", "docs/torchapi_mla_prolog.md")
)
_V3_NOTE = "fp8, hifloat8 and MX weights (modes 3 to 5, Ascend 950) are not simulated"


@reference(f"npu::{_V3}", source=_V3_SOURCE, grade=Grade.GOLDEN, note=_V3_NOTE)
def npu_mla_prolog_v3(
    token_x: Tensor,
    weight_dq: Tensor,
    weight_uq_qr: Tensor,
    weight_uk: Tensor,
    weight_dkv_kr: Tensor,
    rmsnorm_gamma_cq: Tensor,
    rmsnorm_gamma_ckv: Tensor,
    rope_sin: Tensor,
    rope_cos: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    **given: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Write the caches; return the query, its rope part, the query's scales, c_q and its scales."""
    tensors = (token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, rmsnorm_gamma_ckv)
    return _third((*tensors, rope_sin, rope_cos), (kv_cache, kr_cache), given)


@reference(f"npu::{_V3}_functional", source=_V3_SOURCE, grade=Grade.GOLDEN, note=_V3_NOTE)
def npu_mla_prolog_v3_functional(
    token_x: Tensor,
    weight_dq: Tensor,
    weight_uq_qr: Tensor,
    weight_uk: Tensor,
    weight_dkv_kr: Tensor,
    rmsnorm_gamma_cq: Tensor,
    rmsnorm_gamma_ckv: Tensor,
    rope_sin: Tensor,
    rope_cos: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    **given: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """:func:`npu_mla_prolog_v3` on copies of the caches, which come last."""
    caches = kv_cache.clone(), kr_cache.clone()
    tensors = (token_x, weight_dq, weight_uq_qr, weight_uk, weight_dkv_kr, rmsnorm_gamma_cq, rmsnorm_gamma_ckv)
    return *_third((*tensors, rope_sin, rope_cos), caches, given), *caches
