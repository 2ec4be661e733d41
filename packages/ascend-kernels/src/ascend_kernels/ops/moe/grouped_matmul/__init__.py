"""Products of each expert's rows with its own matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.moe.grouped_matmul.calls import calls
from ascend_kernels.ops.moe.grouped_matmul.naive import grouped_matmul_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.moe.grouped_matmul.triton import grouped_matmul_triton

    return grouped_matmul_triton


def _fake(x: torch.Tensor, weight: torch.Tensor, *others: Any) -> torch.Tensor:
    swiglu, dtype = others[5], others[9]
    return x.new_empty(x.shape[0], weight.shape[2] // 2 if swiglu else weight.shape[2], dtype=dtype)


_operator = register(
    "grouped_matmul(Tensor x, Tensor weight, Tensor offsets, Tensor? x_scale, Tensor? weight_scale, Tensor? bias, "
    "bool int4, bool swiglu, float alpha, float up_bias, float limit, ScalarType dtype) -> Tensor",
    naive=grouped_matmul_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def pack_int4(weight: torch.Tensor) -> torch.Tensor:
    """Two elements per byte, as :func:`grouped_matmul` takes them.

    Byte ``i`` of a column holds element ``i`` (plus 8) in its low half and element ``i + K / 2`` in its high half.

    Args:
        weight: integers from -8 to 7 ``[..., K, N]``, ``K`` even.

    Returns:
        int8 ``[..., K / 2, N]``, contiguous.

    Raises:
        ValueError: an odd ``K``, or values that four bits cannot hold.
    """
    if (
        weight.shape[-2] % 2
        or weight.is_floating_point()
        or (weight.numel() and not -8 <= weight.min() <= weight.max() <= 7)
    ):
        raise ValueError(
            f"pack_int4: {weight.dtype} of shape {tuple(weight.shape)}: integers from -8 to 7 "
            "in an even number of rows go"
        )
    low, high = weight.to(torch.int8).chunk(2, dim=-2)
    return ((high << 4) | (low + 8)).contiguous()


def grouped_matmul(
    x: torch.Tensor,
    weight: torch.Tensor,
    offsets: torch.Tensor,
    *,
    x_scale: torch.Tensor | None = None,
    weight_scale: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    int4: bool = False,
    swiglu: bool = False,
    alpha: float = 1.0,
    up_bias: float = 0.0,
    limit: float = 0.0,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """``y[r] = activation((x[r] @ weight[e]) * scales + bias[e])`` for the rows ``r`` of each expert ``e``.

    Args:
        x: ``[rows, K]``, rows strided at will: fp16, bf16 or fp32; or int8 with ``x_scale``.
        weight: ``[experts, K, N]``, columns neighbours: of ``x``'s dtype; or int8 with ``weight_scale``; or
            ``[experts, K / 2, N]``, packed by :func:`ascend_kernels.pack_int4`, with ``int4``.
        offsets: int32 or int64 ``[experts + 1]``, where each expert's rows begin: of
            :func:`ascend_kernels.expert_positions`. Rows behind the last are not computed.
        x_scale: fp32 ``[rows]``: int8 rows times this are ``x``. Needs an int8 weight with one scale per column.
        weight_scale: fp32 ``[experts, groups, N]``, contiguous: integers times this are the weight; each of ``groups``
            runs of ``K / groups`` elements has its own (1: one per column).
        bias: ``[experts, N]``, contiguous, or None.
        int4: the weight is packed.
        swiglu: the first half of the columns gates the second: ``silu(gate) * up``, as :func:`ascend_kernels.swiglu`.
        alpha: of SwiGLU, and ``up_bias`` (added to up) and ``limit`` (0 = none) too.
        dtype: of the result; default that of ``x``, and bf16 for int8.

    Returns:
        ``[rows, N]``, or ``[rows, N / 2]`` with SwiGLU; sums in fp32 (int8 times int8: exact in int32), rounded once.

    Raises:
        ValueError: dtypes or shapes that do not go together; says which.
    """
    _check(x, weight, offsets, x_scale, weight_scale, bias, int4, swiglu, limit)
    if dtype is None:
        dtype = x.dtype if x.is_floating_point() else torch.bfloat16
    if x.stride(1) != 1:
        x = x.contiguous()
    if x_scale is not None:
        x_scale = x_scale.contiguous()
    return _operator(
        x, weight, offsets, x_scale, weight_scale, bias, int4, swiglu, alpha, up_bias, limit, dtype
    )  # fmt: skip


def _check(
    x: torch.Tensor,
    weight: torch.Tensor,
    offsets: torch.Tensor,
    x_scale: torch.Tensor | None,
    weight_scale: torch.Tensor | None,
    bias: torch.Tensor | None,
    int4: bool,
    swiglu: bool,
    limit: float,
) -> None:
    if x.dim() != 2 or weight.dim() != 3 or x.shape[1] != weight.shape[1] * (1 + int4) or weight.stride(2) != 1:
        raise ValueError(
            f"grouped_matmul: x of shape {tuple(x.shape)} and weight {tuple(weight.shape)} with strides "
            f"{weight.stride()}, int4={int4}: [rows, K] and [experts, K, N] (packed: K / 2), columns neighbours, go"
        )
    experts, _, columns = weight.shape
    if offsets.shape != (experts + 1,):
        raise ValueError(
            f"grouped_matmul: offsets of shape {tuple(offsets.shape)} and {experts} experts: {experts + 1} go"
        )
    if (weight_scale is None) != (weight.dtype == x.dtype and x_scale is None) or (int4 and weight_scale is None):
        raise ValueError(
            f"grouped_matmul: x is {x.dtype} and weight {weight.dtype}, weight_scale "
            f"{'missing' if weight_scale is None else 'given'}: equal float dtypes go without scales, an int8 weight "
            "with weight_scale"
        )
    if weight_scale is not None and weight.dtype != torch.int8:
        raise ValueError(f"grouped_matmul: weight_scale given and the weight is {weight.dtype}; int8 goes")
    if (x.dtype == torch.int8) != (x_scale is not None):
        raise ValueError(f"grouped_matmul: x is {x.dtype}; int8 and x_scale go together")
    if weight_scale is not None:
        groups = weight_scale.shape[1] if weight_scale.dim() == 3 else 0
        good = weight_scale.shape == (experts, groups, columns) and weight_scale.is_contiguous() and groups > 0
        if not good or x.shape[1] % groups or (x_scale is not None and (groups > 1 or int4)):
            raise ValueError(
                f"grouped_matmul: weight_scale of shape {tuple(weight_scale.shape)} for {experts} experts, K "
                f"{x.shape[1]}, N {columns}: contiguous [experts, groups, N] with groups that divide K goes, one group "
                "and no int4 where x is int8"
            )
        size = x.shape[1] // groups
        if groups > 1 and (size % 16 or (int4 and weight.shape[1] % 16)):
            raise ValueError(
                f"grouped_matmul: groups of {size} elements of {x.shape[1]}: multiples of 16 (32 in all) go"
            )
    if x_scale is not None and x_scale.shape != x.shape[:1]:
        raise ValueError(f"grouped_matmul: x_scale of shape {tuple(x_scale.shape)} and {x.shape[0]} rows")
    if bias is not None and (bias.shape != (experts, columns) or not bias.is_contiguous()):
        raise ValueError(f"grouped_matmul: bias of shape {tuple(bias.shape)}; contiguous {(experts, columns)} goes")
    if limit < 0 or (swiglu and columns % 2):
        raise ValueError(f"grouped_matmul: limit {limit} and {columns} columns: 0 or more, and an even number, go")
