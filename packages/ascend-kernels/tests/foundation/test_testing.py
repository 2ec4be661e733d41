"""The test helpers themselves: a comparison that fails when it should, and guards that show."""

from __future__ import annotations

import pytest
import torch

from ascend_kernels.testing import assert_close, guarded, poisoned, relative_error


def test_one_unit_in_the_last_place_passes_and_three_fail() -> None:
    expected = torch.ones(4, dtype=torch.float64)
    unit = 2**-7  # distance of the bf16 numbers above 1
    assert_close(torch.full((4,), 1 + unit, dtype=torch.bfloat16), expected, "elementwise")
    with pytest.raises(AssertionError):
        assert_close(torch.full((4,), 1 + 3 * unit, dtype=torch.bfloat16), expected, "elementwise")


def test_nan_never_passes() -> None:
    nan = torch.tensor([float("nan")])
    with pytest.raises(AssertionError):
        assert_close(nan, nan, "reduction")


def test_integers_compare_exactly() -> None:
    with pytest.raises(AssertionError):
        assert_close(torch.tensor([3], dtype=torch.int8), torch.tensor([4]), "elementwise")


def test_guards_lie_around_every_row() -> None:
    view = guarded(torch.arange(6.0).reshape(2, 3), padding=2)
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert view.stride() == (7, 1)
    around = torch.as_strided(view, (2, 7), (7, 1), 0)
    assert around.isnan().sum(1).tolist() == [4, 4]
    assert poisoned(2, dtype=torch.int8).tolist() == [-128, -128]


def test_relative_error() -> None:
    assert relative_error(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 4.5])) == pytest.approx(0.5 / (29.25**0.5))
