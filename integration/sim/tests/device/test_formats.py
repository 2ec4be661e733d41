"""Storage formats: what casts to NZ and back report, keep and refuse, as torch_npu's own cast does."""

import pytest
import torch
import torch_npu

ND, NZ, NCHW = torch_npu.Format.ND, torch_npu.Format.FRACTAL_NZ, torch_npu.Format.NCHW


@pytest.fixture
def x() -> torch.Tensor:
    return torch.rand(33, 65, device="npu").half()


def test_a_cast_makes_a_new_tensor_of_the_format_and_keeps_the_values(x: torch.Tensor) -> None:
    y = torch_npu.npu_format_cast(x, NZ)
    assert (torch_npu.get_npu_format(x), torch_npu.get_npu_format(y)) == (ND, NZ)
    assert y.data_ptr() != x.data_ptr()
    assert torch.equal(y, x)
    back = torch_npu.npu_format_cast(y, ND)
    assert torch_npu.get_npu_format(back) == ND
    assert torch.equal(back, x)


def test_nz_pads_rows_and_columns_to_whole_blocks(x: torch.Tensor) -> None:
    """Blocks are 16 rows of 32 bytes: 33 x 65 half-precision elements take 48 x 80, int8 ones 48 x 96."""
    assert torch_npu.get_storage_size(torch_npu.npu_format_cast(x, NZ)) == 48 * 80
    assert torch_npu.get_storage_size(torch_npu.npu_format_cast(x.to(torch.int8), NZ)) == 48 * 96


def test_views_have_the_format_of_their_storage_and_results_have_not(x: torch.Tensor) -> None:
    y = torch_npu.npu_format_cast(x, NZ)
    for view in (y.t(), y[1:], y.detach(), torch.nn.Parameter(y).data):
        assert torch_npu.get_npu_format(view) == NZ
    for result in (y + 1, y.clone(), y.t().contiguous(), y.float()):
        assert torch_npu.get_npu_format(result) == ND


def test_a_cast_of_a_view_is_contiguous(x: torch.Tensor) -> None:
    y = torch_npu.npu_format_cast(x.t(), NZ)
    assert y.is_contiguous()
    assert torch.equal(y, x.t())


def test_a_cast_to_the_same_format_is_the_tensor_itself(x: torch.Tensor) -> None:
    assert torch_npu.npu_format_cast(x, ND) is x
    y = torch_npu.npu_format_cast(x, NZ)
    assert torch_npu.npu_format_cast(y, NZ) is y
    assert torch_npu.npu_format_cast(y, y) is y


def test_between_formats_without_blocks_only_the_name_changes() -> None:
    x = torch.rand(1, 2, 3, 4, device="npu")
    y = torch_npu.npu_format_cast(x, ND)
    assert y is x
    assert torch_npu.get_npu_format(x) == ND
    torch_npu.npu_format_cast_(x, NCHW)
    assert torch_npu.get_npu_format(x) == NCHW


@pytest.mark.parametrize(
    "target", [pytest.param(lambda like: NZ, id="number"), pytest.param(lambda like: like, id="like")]
)
def test_a_cast_in_place_changes_the_tensor_itself(x: torch.Tensor, target) -> None:
    like = torch_npu.npu_format_cast(x, NZ)
    values = x.cpu()
    assert torch_npu.npu_format_cast_(x, target(like)) is x
    assert torch_npu.get_npu_format(x) == NZ
    assert torch.equal(x.cpu(), values)


def test_the_format_of_another_tensor(x: torch.Tensor) -> None:
    like = torch_npu.npu_format_cast(x[:16, :16].contiguous(), NZ)
    y = torch_npu.npu_format_cast(x, like)
    assert torch_npu.get_npu_format(y) == NZ
    assert torch.equal(y, x)


def test_a_captured_cast(x: torch.Tensor) -> None:
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        y = torch_npu.npu_format_cast(x, NZ)
    x.fill_(3)
    graph.replay()
    assert torch_npu.get_npu_format(y) == NZ
    assert torch.equal(y, x)


def test_unknown_formats_are_refused(x: torch.Tensor) -> None:
    with pytest.raises(RuntimeError, match="unknown format type:77"):
        torch_npu.npu_format_cast(x, 77)


def test_vectors_stay_plain() -> None:
    """torch_npu warns and makes a plain tensor: fewer than two dimensions have no blocks."""
    assert torch_npu.get_npu_format(torch_npu.npu_format_cast(torch.ones(5, device="npu"), NZ)) == ND
