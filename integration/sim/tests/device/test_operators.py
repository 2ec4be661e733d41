"""Operators on the simulated device: values, placement, and what is refused."""

import pytest
import torch
import torch_npu


@pytest.fixture
def x() -> torch.Tensor:
    return torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda t: t + 1, id="add"),
        pytest.param(lambda t: t @ t.T, id="matmul"),
        pytest.param(lambda t: torch.nn.functional.layer_norm(t, (3,)), id="layer_norm"),
        pytest.param(lambda t: t.topk(2, dim=-1).values, id="topk"),
        pytest.param(lambda t: torch.sort(t, dim=-1, descending=True).indices, id="sort-indices"),
        pytest.param(lambda t: t[:, [2, 0]], id="index-list"),
        pytest.param(lambda t: t[t > 0], id="index-mask"),
        pytest.param(lambda t: torch.cat([t, t.flip(0)]), id="cat"),
        pytest.param(lambda t: torch.where(t > 0, t, 0.0), id="where"),
        pytest.param(lambda t: t.cumsum(-1), id="cumsum"),
        pytest.param(lambda t: t.to(torch.bfloat16).float(), id="cast"),
        pytest.param(lambda t: t.expand(4, 2, 3).sum((0, 2)), id="expand-sum"),
        pytest.param(lambda t: t.transpose(0, 1).contiguous(), id="transpose"),
        pytest.param(lambda t: torch.stack(torch.unbind(t, 1)), id="unbind-stack"),
        pytest.param(lambda t: torch._foreach_mul([t, t], 2.0)[1], id="foreach"),
        pytest.param(lambda t: torch.fft.rfft(t).abs(), id="complex"),
    ],
)
def test_values_equal_the_cpu_and_stay_on_the_device(x: torch.Tensor, function) -> None:
    result = function(x.npu())
    assert result.device == torch.device("npu:0")
    torch.testing.assert_close(result.cpu(), function(x))


def test_views_share_memory(x: torch.Tensor) -> None:
    device = x.npu()
    device.view(-1)[1] = 7
    device[1].add_(1)
    device.t()[0, 0] = 9
    assert device.tolist() == [[9, 7, 3], [5, 6, -5]]


def test_out_arguments_are_written_and_resized(x: torch.Tensor) -> None:
    out = torch.empty(2, 3, device="npu")
    address = out.data_ptr()
    assert torch.add(x.npu(), 1, out=out) is out
    assert out.data_ptr() == address
    assert out.tolist() == [[2, -1, 4], [5, 6, -5]]
    small = torch.empty(0, device="npu")
    torch.mul(x.npu(), 2, out=small)
    assert small.tolist() == [[2, -4, 6], [8, 10, -12]]


def test_empty_tensors(x: torch.Tensor) -> None:
    nothing = x[:0].npu()
    assert (nothing @ torch.ones(3, 4, device="npu")).shape == (0, 4)
    assert torch.cat([nothing, x.npu()]).shape == (2, 3)


def test_mixed_devices_are_refused(x: torch.Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"aten::add.Tensor: .*at least two devices, npu:0 and cpu"):
        x.npu() + x
    with pytest.raises(RuntimeError, match=r"same device, but found npu:0 and npu:1"):
        x.npu() + x.to("npu:1")
    assert (x.npu() + torch.tensor(1.0)).tolist() == (x + 1).tolist()  # a CPU scalar is a number


def test_copies_between_devices(x: torch.Tensor) -> None:
    second = x.to("npu:1")
    assert second.device == torch.device("npu:1")
    assert second.to("npu:0").add(1).device == torch.device("npu:0")
    assert torch.equal(second.cpu(), x)
    assert torch.equal(x.npu(non_blocking=True).cpu(), x)


def test_autograd(x: torch.Tensor) -> None:
    weight = x.npu().requires_grad_()
    (weight**2).sum().backward()
    assert weight.grad is not None
    assert torch.equal(weight.grad.cpu(), 2 * x)


def test_an_operator_without_a_reference_names_itself(x: torch.Tensor) -> None:
    with pytest.raises(NotImplementedError, match=r"npu::npu_diou.*no reference"):
        torch_npu.npu_diou(torch.ones(4, 2, device="npu"), torch.ones(4, 2, device="npu"), trans=True, is_cross=False)


def test_vendor_operators_have_no_cpu_kernel(x: torch.Tensor) -> None:
    with pytest.raises(NotImplementedError, match=r"Could not run 'npu::npu_rms_norm' with arguments from the 'CPU'"):
        torch_npu.npu_rms_norm(x, torch.ones(3))
    with pytest.raises(NotImplementedError, match="Could not run 'npu::npu_silu_'"):
        torch_npu.npu_silu_(x)


def test_vendor_operators_do_not_mix_devices(x: torch.Tensor) -> None:
    with pytest.raises(RuntimeError, match=r"npu::npu_rms_norm: .*npu:0 and cpu! \(argument gamma\)"):
        torch_npu.npu_rms_norm(x.npu(), torch.ones(3))
    with pytest.raises(RuntimeError, match=r"npu::npu_rms_norm: .*npu:0 and npu:1"):
        torch_npu.npu_rms_norm(x.npu(), torch.ones(3, device="npu:1"))
    with pytest.raises(RuntimeError, match=r"npu::npu_attention_update: .*npu:0 and cpu! \(argument local_out\)"):
        torch_npu.npu_attention_update([torch.zeros(2).npu()], [torch.zeros(2, 8)], 0)


def test_lengths_of_the_transformer_boost_library_lie_on_the_host() -> None:
    query, cache = torch.ones(1, 2, 16, device="npu").half(), torch.ones(3, 128, 2, 16, device="npu").half()
    table, out = torch.ones(1, 1, dtype=torch.int32), torch.zeros_like(query)
    lengths = torch.tensor([5], dtype=torch.int32)
    torch_npu._npu_paged_attention(query, cache, cache, 2, 2, 1.0, table.npu(), lengths, out)
    assert torch.equal(out, query)
    with pytest.raises(RuntimeError, match=r"npu:0 and cpu! \(argument block_table\)"):
        torch_npu._npu_paged_attention(query, cache, cache, 2, 2, 1.0, table, lengths, out)
