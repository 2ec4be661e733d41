"""Chrome traces: what they hold, and that they are written whatever happens."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ascend_sim import instruments


def events(path: Path, **wanted: Any) -> list[dict[str, Any]]:
    found = json.loads(path.read_text())
    return [event for event in found if all(event.get(key) == value for key, value in wanted.items())]


def test_an_operator_has_its_tensors_stream_and_time(tmp_path: Path) -> None:
    x, index = torch.ones(3, 4, device="npu"), torch.tensor([0, 2]).npu()
    with instruments.trace(tmp_path / "t.json"):
        x.index_select(0, index)
    torch.add(x, 1)  # after the trace
    (event,) = events(tmp_path / "t.json", ph="X")
    assert event["name"] == "aten::index_select"
    assert event["cat"] == "op"
    assert event["args"]["tensors"] == "float32[3, 4] int64[2]"
    assert event["dur"] > 0
    names = {(e["name"], e["args"]["name"]) for e in events(tmp_path / "t.json", ph="M")}
    assert ("process_name", "npu:0") in names
    assert ("thread_name", f"stream {event['tid']}") in names


def test_streams_are_threads(tmp_path: Path) -> None:
    x, side = torch.ones(3, device="npu"), torch.npu.Stream()
    with instruments.trace(tmp_path / "t.json"):
        x + 1
        with torch.npu.stream(side):
            x * 2
    first, second = events(tmp_path / "t.json", cat="op")
    assert first["tid"] != second["tid"]


def test_tasks_lie_inside_their_replay(tmp_path: Path) -> None:
    x, graph = torch.ones(3, device="npu"), torch.npu.NPUGraph()
    with instruments.trace(tmp_path / "t.json"):
        with torch.npu.graph(graph):
            torch.relu(x * 2)
        graph.replay()
    assert [e["name"] for e in events(tmp_path / "t.json", cat="captured")] == ["aten::mul.Tensor", "aten::relu"]
    (replay,) = events(tmp_path / "t.json", cat="replay")
    tasks = events(tmp_path / "t.json", cat="graph")
    assert [(task["name"], task["args"]["task"]) for task in tasks] == [("aten::mul.Tensor", 0), ("aten::relu", 1)]
    for task in tasks:
        assert task["tid"] == replay["tid"]
        assert task["args"]["tensors"].startswith("float32[3]")
        assert f"replay of graph {task['args']['graph']}" == replay["name"]
        assert replay["ts"] <= task["ts"] <= task["ts"] + task["dur"] <= replay["ts"] + replay["dur"]


def test_arrows_lead_from_records_to_waits(tmp_path: Path) -> None:
    event, side = torch.npu.Event(), torch.npu.Stream()
    with instruments.trace(tmp_path / "t.json"):
        event.record()
        side.wait_event(event)
    (start,), (finish,) = events(tmp_path / "t.json", ph="s"), events(tmp_path / "t.json", ph="f")
    assert start["id"] == finish["id"]
    assert start["tid"] != finish["tid"]


def test_two_traces_at_once_are_refused(tmp_path: Path) -> None:
    with (
        instruments.trace(tmp_path / "a.json"),
        pytest.raises(RuntimeError, match=r"being written to .*a.json already"),
        instruments.trace(tmp_path / "b.json"),
    ):
        pass
    assert not (tmp_path / "b.json").exists()


@pytest.mark.parametrize("end", ["raise ValueError('the end')", "pass"])
def test_a_process_writes_its_trace_however_it_ends(tmp_path: Path, end: str) -> None:
    environment = os.environ | {"ASCEND_SIM_CHROME_TRACE": str(tmp_path / "t.json")}
    code = f"import torch; torch.ones(2, device='npu') + 1; {end}"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True)
    (path,) = tmp_path.glob("t.*.json")
    assert "aten::add.Tensor" in {event["name"] for event in json.loads(path.read_text())}
