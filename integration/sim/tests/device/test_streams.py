"""Streams, events and devices as `torch.npu` shows them."""

import time

import pytest
import torch


def test_events_measure_host_time() -> None:
    start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    start.record()
    time.sleep(0.02)
    end.record()
    end.synchronize()
    assert 15 < start.elapsed_time(end) < 1000


def test_streams_and_events() -> None:
    stream = torch.npu.Stream()
    assert stream != torch.npu.current_stream()
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        value = torch.ones(2, device="npu") * 2
        event = stream.record_event()
    torch.npu.current_stream().wait_event(event)
    assert event.query()
    assert stream.query()
    assert (value + 1).tolist() == [3, 3]


def test_generic_accelerator_interface() -> None:
    assert torch.accelerator.current_accelerator() == torch.device("npu")
    assert torch.accelerator.device_count() == torch.npu.device_count() == 2
    event = torch.Event("npu")
    event.record()
    event.synchronize()
    torch.accelerator.synchronize()


def test_device_properties() -> None:
    properties = torch.npu.get_device_properties(0)
    assert torch.npu.get_device_name(0) == properties.name == "Ascend910B1"
    assert properties.total_memory == 8 << 30
    assert (properties.cube_core_num, properties.vector_core_num) == (24, 48)  # 910B1: public product data


def test_devices_are_selected_and_checked() -> None:
    with torch.npu.device(1):
        assert torch.ones(1, device="npu").device.index == 1
    assert torch.npu.current_device() == 0
    with pytest.raises(RuntimeError, match=r"npu:7|[Ii]nvalid device|device 7"):
        torch.ones(1, device="npu:7")


def test_host_functions_run_in_stream_order() -> None:
    seen: list[float] = []
    value = torch.full((1,), 3.0, device="npu")
    stream = torch.npu.current_stream()
    torch.npu._subscribe_report(stream)
    torch.npu._launch_host_func(stream, lambda argument: seen.append(argument), 4.0)
    torch.npu._unsubscribe_report(stream)
    stream.synchronize()
    assert seen == [4.0]
    assert value.item() == 3
