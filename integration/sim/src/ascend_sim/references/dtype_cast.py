# SPDX-License-Identifier: Apache-2.0
"""Changing a tensor's dtype, where torch_npu calls an operator of its own for it (softmax with a dtype, one_hot)."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from ascend_sim.references.limits import not_simulated
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import wheel_doc, wheel_meta


@reference("npu::_npu_dtype_cast", source=wheel_meta("_npu_dtype_cast"), grade=Grade.DOCUMENTED)
def _npu_dtype_cast(input: Tensor, dtype: torch.dtype) -> Tensor:
    """``input`` in ``dtype``, always a new tensor."""
    return input.to(dtype, copy=True)


@functools.cache
def _by_number() -> dict[int, torch.dtype]:
    """torch's dtypes by the number that C++ (c10::ScalarType) gives them."""
    from torch_npu.op_plugin.meta import _meta_registrations

    known = _meta_registrations.TORCH_DTYPE_ENUM_VALUE_TO_SCALAR_TYPE_MAP
    return {number: dtype for number, dtype in known.items() if number < 256}  # torch_npu's own formats come after


@reference("npu::npu_dtype_cast", source=wheel_doc("npu_dtype_cast"), grade=Grade.DOCUMENTED)
def npu_dtype_cast(input: Tensor, dtype: int, input_dtype: int | None = None) -> Tensor:
    """``input`` in the dtype of number ``dtype``; not those of torch_npu's own formats."""
    if input_dtype is not None:
        raise not_simulated("npu_dtype_cast", "input_dtype", input_dtype)
    if dtype not in _by_number():
        raise not_simulated("npu_dtype_cast", "dtype", dtype)
    return input.to(_by_number()[dtype], copy=True)
