"""The definition in torch."""

from __future__ import annotations

from itertools import pairwise

import torch

from ascend_kernels.ops.activation.swiglu.naive import swiglu_naive


def unpacked(weight: torch.Tensor) -> torch.Tensor:
    """int8 ``[..., K, N]`` with values from -8 to 7 out of what :func:`ascend_kernels.pack_int4` made."""
    high = weight >> 4
    return torch.cat(((weight & 15) - 8, high), dim=-2)


def grouped_matmul_naive(
    x: torch.Tensor,
    weight: torch.Tensor,
    offsets: torch.Tensor,
    x_scale: torch.Tensor | None,
    weight_scale: torch.Tensor | None,
    bias: torch.Tensor | None,
    int4: bool,
    swiglu: bool,
    alpha: float,
    up_bias: float,
    limit: float,
    dtype: torch.dtype,
) -> torch.Tensor:
    """See :func:`ascend_kernels.grouped_matmul`."""
    columns = weight.shape[2]
    result = x.new_empty(x.shape[0], columns // 2 if swiglu else columns, dtype=dtype)
    bounds = offsets.tolist()
    for expert, (begin, end) in enumerate(pairwise(bounds)):
        matrix = (unpacked(weight[expert]) if int4 else weight[expert]).double()
        if weight_scale is not None:
            scale = weight_scale[expert].double()
            matrix = matrix * scale.repeat_interleave(matrix.shape[0] // scale.shape[0], dim=0)
        product = x[begin:end].double() @ matrix
        if x_scale is not None:
            product = product * x_scale[begin:end].double()[:, None]
        if bias is not None:
            product = product + bias[expert].double()
        if swiglu:
            product = swiglu_naive(product.float(), alpha, up_bias, limit, False)
        result[begin:end] = product.to(dtype)
    return result
