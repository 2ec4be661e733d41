"""What every rank runs to balance experts while two layers serve."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import torch
import torch.distributed as dist
from vllm.config import VllmConfig
from vllm.model_executor.models.interfaces import MixtureOfExperts

from ascend_moe.vllm.balancer import EngineBalancer

from .building import build, engine, forward
from .cases import EXPERTS, Arrangement, inputs

ARRANGEMENT, LAYERS, REDUNDANT, DTYPE = Arrangement(4, 1), 2, 4, torch.float32
MAP = [[[0, 1, 2], [3, 4, 5], [6, 7, 0], [2, 1, 6]], [[7, 6, 5], [4, 3, 2], [1, 0, 7], [0, 6, 5]]]
"""A placement of 8 experts, the first 4 of them or others twice, in 3 slots of 4 ranks."""


class Log(logging.Handler):
    """Keeps what was said."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


class Model(MixtureOfExperts):
    """Two layers, as vLLM's models show them to a balancer."""

    num_moe_layers = LAYERS
    num_logical_experts = EXPERTS
    num_redundant_experts = REDUNDANT

    def __init__(self, name: str) -> None:
        self.moe_layers = [build(ARRANGEMENT, f"{name}.{it}", DTYPE, REDUNDANT) for it in range(LAYERS)]
        self.expert_weights: list[list[torch.Tensor]] = []


class Served:
    """A model whose layers run one after the other from a captured graph, and its balancer."""

    def __init__(self, name: str, config: VllmConfig, rank: int) -> None:
        self.model = Model(name)
        self.balancer = EngineBalancer(config.parallel_config, torch.device("npu", rank))
        self.balancer.add_model(self.model, config.model_config)
        self._inputs = [it.npu() for it in inputs(rank, DTYPE)]

        def run() -> list[torch.Tensor]:
            return [forward(layer, config, ARRANGEMENT, *self._inputs) for layer in self.model.moe_layers]

        self.balancer.step(is_profile=True)
        run()
        self.balancer.step(is_dummy=True)
        self._graph = torch.npu.NPUGraph()
        with torch.npu.graph(self._graph):
            self._outputs = run()

    def step(self, *, log_stats: bool = False) -> list[torch.Tensor]:
        """Each layer's output in one step."""
        self._graph.replay()
        outputs = [it.cpu() for it in self._outputs]
        self.balancer.step(log_stats=log_stats)
        return outputs


def waiting_for_plans(rank: int, folder: Path) -> dict[str, Any]:
    """Every fourth step waits for a plan and moves all layers."""
    record = folder / "waiting.json"
    moe = {"exchange": "all_gather", "eplb": {"policy": "random", "record_file": str(record)}}
    settings = {"num_redundant_experts": REDUNDANT, "step_interval": 4, "window_size": 4, "use_async": False}
    with engine(ARRANGEMENT, rank, moe, **settings) as config:
        served, log = Served("waiting", config, rank), Log()
        logging.getLogger("vllm.ascend_moe").addHandler(log)
        outputs = [served.step(log_stats=True) for _ in range(6)]
        dist.barrier()
        return {"outputs": outputs, "placement": placement_in(record), "log": log.messages}


def a_killed_planner(rank: int, folder: Path) -> dict[str, Any]:
    """Plans come from a process that serving does not wait for; the first one is killed."""
    record = folder / "background.json"
    moe = {"exchange": "all_gather", "eplb": {"policy": "random", "record_file": str(record)}}
    settings = {"num_redundant_experts": REDUNDANT, "step_interval": 4, "window_size": 4, "use_async": True}
    with engine(ARRANGEMENT, rank, moe, **settings) as config:
        served = Served("background", config, rank)
        if rank == 0:
            (planner,) = [it for it in psutil.Process().children() if "planner" in " ".join(it.cmdline())]
            os.kill(planner.pid, signal.SIGKILL)
        outputs, deadline = [], time.monotonic() + 100
        while time.monotonic() < deadline:
            outputs.append(served.step())
            done = torch.tensor([record.exists()], dtype=torch.int32).npu()
            dist.all_reduce(done)
            if done.item():
                break
        outputs.append(served.step())
        return {"outputs": outputs, "placement": placement_in(record)}


def a_map_file(rank: int, folder: Path) -> dict[str, Any]:
    """The first steps lead to the placement of a file."""
    path, record = folder / f"map{rank}.json", folder / "mapped.json"
    devices = [[{"device_id": rank, "device_expert": experts} for rank, experts in enumerate(layer)] for layer in MAP]
    layers = [{"layer_id": it, "device_count": 4, "device_list": devices[it]} for it in range(LAYERS)]
    path.write_text(json.dumps({"moe_layer_count": LAYERS, "layer_list": layers}))
    return mapped("map", rank, path, record)


def a_corrupt_map_file(rank: int, folder: Path) -> dict[str, Any]:
    """A file that is cut off changes nothing."""
    path = folder / f"corrupt{rank}.json"
    path.write_text('{"moe_layer_count": 2, "layer_list": [')
    return mapped("corrupt", rank, path, folder / "corrupt.json")


def mapped(name: str, rank: int, path: Path, record: Path) -> dict[str, Any]:
    moe = {"exchange": "all_gather", "eplb": {"map_file": str(path), "record_file": str(record)}}
    settings = {"num_redundant_experts": REDUNDANT, "step_interval": 1000, "window_size": 4}
    with engine(ARRANGEMENT, rank, moe, **settings) as config:
        served = Served(name, config, rank)
        outputs = [served.step() for _ in range(4)]
        dist.barrier()
        return {"outputs": outputs, "placement": placement_in(record) if record.exists() else None}


def placement_in(path: Path) -> list[list[list[int]]]:
    """[layers][ranks][slots]."""
    layers = json.loads(path.read_text())["layer_list"]
    return [[device["device_expert"] for device in layer["device_list"]] for layer in layers]


SCENARIOS: list[Callable[[int, Path], dict[str, Any]]] = [
    waiting_for_plans,
    a_killed_planner,
    a_map_file,
    a_corrupt_map_file,
]
