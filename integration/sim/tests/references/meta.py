# SPDX-License-Identifier: Apache-2.0
"""Calling an operator and comparing what it returns with what torch_npu's own Meta kernel says it returns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

WITH_META = frozenset(torch._C._dispatch_get_registrations_for_dispatch_key("Meta"))


def _to_meta(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_to_meta, value))
    return value.to("meta") if isinstance(value, Tensor) else value


def _described(result: Any) -> list[tuple[torch.Size, torch.dtype] | None]:
    results = result if isinstance(result, (list, tuple)) else (result,)
    return [None if item is None else (item.shape, item.dtype) for item in results]


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Run the npu operator ``name`` on CPU tensors; fail if its Meta kernel gives other shapes or dtypes."""
    operator = getattr(torch.ops.npu, name)
    expected = None
    if f"npu::{name}" in WITH_META:
        expected = operator(*_to_meta(args), **{key: _to_meta(value) for key, value in kwargs.items()})
    result = operator(*args, **kwargs)
    if expected is not None:
        assert _described(result) == _described(expected)
    return result
