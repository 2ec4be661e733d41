"""Products of half-precision matrices: sums in float32, rounded once, the same for a row alone and in any batch."""

import pytest
import torch

HALVES = [torch.bfloat16, torch.float16]
SHAPES = [(1, 8, 1), (3, 17, 5), (4, 64, 3), (5, 1, 25), (65, 100, 49), (130, 24, 96)]  # rows, depth, columns


def exact(rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    """Whole numbers of -2 to 2: their products of the depths used here are exact in every type."""
    return torch.randint(-2, 3, (rows, columns)).to(dtype)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("rows", "depth", "columns"), SHAPES)
def test_products_of_whole_numbers_are_exact(rows: int, depth: int, columns: int, dtype: torch.dtype) -> None:
    a, b, addend = exact(rows, depth, dtype), exact(depth, columns, dtype), exact(1, columns, dtype)[0]
    product = (a.double() @ b.double()).to(dtype)
    transposed = b.t().contiguous().npu().t()
    for right in (b.npu(), transposed):
        assert torch.equal((a.npu() @ right).cpu(), product)
    linear = torch.nn.functional.linear(a.npu(), transposed.t(), addend.npu())
    assert torch.equal(linear.cpu(), (a.double() @ b.double() + addend.double()).to(dtype))
    assert torch.equal(torch.mm(a.npu(), b.npu(), out=torch.empty_like(product, device="npu")).cpu(), product)


@pytest.mark.parametrize("dtype", HALVES)
def test_sums_are_of_float32_and_rounded_once(dtype: torch.dtype) -> None:
    a, b = torch.randn(33, 1536).to(dtype), torch.randn(1536, 40).to(dtype)
    exactly = a.double() @ b.double()
    error = ((a.npu() @ b.npu()).cpu().double() - exactly).abs()
    # Half a unit in the last place for the rounding, and what 1536 additions of float32 may lose.
    assert (error <= exactly.abs() * torch.finfo(dtype).eps / 2 + 1e-3).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_a_row_does_not_depend_on_its_batch(dtype: torch.dtype) -> None:
    a, b = torch.randn(70, 576).to(dtype).npu(), torch.randn(576, 50).to(dtype).npu()
    together = a @ b
    for rows in ([0], [69], [3, 68, 5], list(range(9))):
        assert torch.equal(a[rows] @ b, together[rows])


@pytest.mark.parametrize("dtype", HALVES)
def test_batches_and_leading_dimensions(dtype: torch.dtype) -> None:
    a, b = exact(6 * 4, 8, dtype).view(2, 3, 4, 8), exact(6 * 8, 5, dtype).view(2, 3, 8, 5)
    expected = (a.double() @ b.double()).to(dtype)
    assert torch.equal((a.npu() @ b.npu()).cpu(), expected)
    assert torch.equal(torch.bmm(a[0].npu(), b[0].npu()).cpu(), expected[0])
    assert torch.equal((a.npu() @ b[0, 0].npu()).cpu(), (a.double() @ b[0, 0].double()).to(dtype))
    assert torch.equal((a.npu() @ b[:1].npu()).cpu(), (a.double() @ b[:1].double()).to(dtype))
    assert torch.equal((a.transpose(0, 1).npu() @ b.transpose(0, 1).npu()).cpu(), expected.transpose(0, 1))
    assert torch.equal(
        (a[0, 0].npu() @ b[0, 0, :, 0].npu()).cpu(), (a[0, 0].double() @ b[0, 0, :, 0].double()).to(dtype)
    )


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("rows", "depth", "columns"), [(0, 5, 3), (4, 0, 3), (4, 5, 0)])
def test_empty_products(rows: int, depth: int, columns: int, dtype: torch.dtype) -> None:
    a, b = exact(rows, depth, dtype), exact(depth, columns, dtype)
    assert torch.equal((a.npu() @ b.npu()).cpu(), torch.zeros(rows, columns, dtype=dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_addends_and_their_factors(dtype: torch.dtype) -> None:
    a, b, addend = exact(6, 8, dtype), exact(8, 30, dtype), exact(6, 30, dtype)
    product = a.double() @ b.double()
    result = torch.addmm(addend.npu(), a.npu(), b.npu(), beta=2, alpha=-1)
    assert torch.equal(result.cpu(), (2 * addend.double() - product).to(dtype))
    column = torch.addmm(addend[:, :1].npu(), a.npu(), b.npu())
    assert torch.equal(column.cpu(), (addend[:, :1].double() + product).to(dtype))
    ignored = torch.addmm(torch.full_like(addend, float("nan")).npu(), a.npu(), b.npu(), beta=0)
    assert torch.equal(ignored.cpu(), product.to(dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_infinities_and_nan_spread_as_in_ieee_arithmetic(dtype: torch.dtype) -> None:
    a, b = torch.ones(2, 9, dtype=dtype), torch.ones(9, 4, dtype=dtype)
    a[0, 8], b[0, 1], b[1, 2] = float("inf"), float("nan"), float("-inf")
    result = (a.npu() @ b.npu()).cpu()
    expected = torch.tensor(
        [[float("inf"), float("nan"), float("nan"), float("inf")], [9, float("nan"), float("-inf"), 9]]
    )
    assert torch.equal(result.isnan(), expected.isnan())
    assert torch.equal(result.nan_to_num(0), expected.to(dtype).nan_to_num(0))


@pytest.mark.parametrize("dtype", HALVES)
def test_sizes_that_do_not_fit_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.mm(exact(2, 3, dtype).npu(), exact(4, 5, dtype).npu())
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype|same dtype"):
        torch.mm(exact(2, 3, dtype).npu(), torch.ones(3, 2).npu())
