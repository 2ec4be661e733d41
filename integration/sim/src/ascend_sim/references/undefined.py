# SPDX-License-Identifier: Apache-2.0
"""Results whose contents the vendor leaves undefined.

They are filled with what a program cannot use by mistake without noticing: NaN, or the lowest integer.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_SPECIAL = (torch.float8_e8m0fnu,)


def poison(tensor: Tensor) -> Tensor:
    """Fill ``tensor`` in place and return it."""
    if tensor.dtype in _SPECIAL:
        tensor.view(torch.uint8).fill_(255)  # NaN
    elif tensor.is_floating_point():
        tensor.fill_(torch.nan)
    elif tensor.dtype == torch.bool:
        tensor.fill_(True)
    else:
        tensor.fill_(torch.iinfo(tensor.dtype).min)
    return tensor


def undefined(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A new tensor of undefined contents."""
    return poison(torch.empty(shape, dtype=dtype))
