# SPDX-License-Identifier: Apache-2.0
"""Changing a tensor's storage format (ND, fractal NZ, ...).

The simulation keeps every tensor's values in ND order, so a cast copies. That the result has the format, and which
casts give the tensor itself, is seen to by ``csrc/dispatch/format.cpp``. Formats are numbers of ``torch_npu.Format``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import wheel_doc, wheel_meta

_NOTE = "the values stay in ND order in memory"


def _check(op: str, customize_dtype: int | None) -> None:
    if customize_dtype is not None:
        raise limits.not_simulated(op, "customize_dtype", customize_dtype)


@reference("npu::npu_format_cast", source=wheel_doc("npu_format_cast"), grade=Grade.DOCUMENTED, note=_NOTE)
def npu_format_cast(
    input: Tensor, acl_format: int, *, customize_dtype: int | None = None, input_dtype: int | None = None
) -> Tensor:
    """A copy of ``input`` in format ``acl_format``."""
    _check("npu_format_cast", customize_dtype)
    return input.clone(memory_format=torch.contiguous_format)


@reference("npu::npu_format_cast.Tensor", source=wheel_doc("npu_format_cast"), grade=Grade.DOCUMENTED, note=_NOTE)
def npu_format_cast_like(
    input: Tensor, dst: Tensor, *, customize_dtype: int | None = None, input_dtype: int | None = None
) -> Tensor:
    """A copy of ``input`` in the format of ``dst``."""
    return npu_format_cast(input, 0, customize_dtype=customize_dtype)


@reference("npu::_npu_format_cast", source=wheel_meta("_npu_format_cast"), grade=Grade.DOCUMENTED, note=_NOTE)
def _npu_format_cast(input: Tensor, acl_format: int) -> Tensor:
    """A copy of ``input`` in format ``acl_format``."""
    return npu_format_cast(input, acl_format)


@reference("npu::npu_format_cast_.acl_format", source=wheel_doc("npu_format_cast_"), grade=Grade.DOCUMENTED, note=_NOTE)
def npu_format_cast_in_place(
    input: Tensor, acl_format: int, *, customize_dtype: int | None = None, input_dtype: int | None = None
) -> Tensor:
    """``input`` itself, in format ``acl_format``."""
    _check("npu_format_cast_", customize_dtype)
    return input


@reference("npu::npu_format_cast_", source=wheel_doc("npu_format_cast_"), grade=Grade.DOCUMENTED, note=_NOTE)
def npu_format_cast_in_place_like(
    input: Tensor, src: Tensor, *, customize_dtype: int | None = None, input_dtype: int | None = None
) -> Tensor:
    """``input`` itself, in the format of ``src``."""
    _check("npu_format_cast_", customize_dtype)
    return input
