"""PyTorch's operator database in float32, forward, on the NPU against the CPU."""

from typing import Any

import pytest
import torch

from .cases import check, check_list, operators
from .judge import Tally

DTYPE = torch.float32


@pytest.mark.parametrize("op", operators(DTYPE))
def test_agrees_with_the_cpu_or_is_listed(op: Any, tally: Tally) -> None:
    check(op, DTYPE, tally)


def test_the_list_is_short_and_names_operators_of_the_database() -> None:
    check_list(DTYPE)
