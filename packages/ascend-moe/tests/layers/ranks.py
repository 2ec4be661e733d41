"""What every rank runs: all cases, in order; the results go to a file."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from vllm.config import VllmConfig
from vllm.model_executor.custom_op import PluggableLayer
from vllm.model_executor.layers.fused_moe import FusedMoE
from vllm.v1.worker.workspace import init_workspace_manager

from ascend_moe.vllm.method import AscendUnquantizedFusedMoEMethod
from ascend_moe.vllm.runner import AscendMoERunner

from .balancing import SCENARIOS
from .building import build, engine, forward
from .cases import CASES, WORLD, Case, inputs


def start(rank: int, port: int) -> None:
    """What a worker does before it builds a model."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", rank=rank, world_size=WORLD, timeout=datetime.timedelta(seconds=120))
    init_workspace_manager(torch.device("npu", rank))
    PluggableLayer.register_oot(name="MoERunner")(AscendMoERunner)
    AscendUnquantizedFusedMoEMethod.register_oot(name="UnquantizedFusedMoEMethod")(AscendUnquantizedFusedMoEMethod)


@torch.inference_mode()
def main(rank: int, port: int, folder: Path) -> None:
    start(rank, port)
    results: dict[str, Any] = {str(case): run(case, rank) for case in CASES}
    results |= {scenario.__name__: scenario(rank, folder) for scenario in SCENARIOS}
    torch.save(results, folder / f"{rank}.pt")
    dist.destroy_process_group()


def run(case: Case, rank: int) -> dict[str, Any]:
    with engine(case.arrangement, rank, {"exchange": case.method}) as config:
        layer = build(case.arrangement, str(case), case.dtype)
        tokens, logits = (it.npu() for it in inputs(case.arrangement.replica_of(rank), case.dtype))
        run_captured = replayed if case.captured else forward
        output = run_captured(layer, config, case.arrangement, tokens, logits)
        shared = layer.runner.shared_experts._layer
        main_stream = torch.npu.current_stream().npu_stream
        return {"output": output.cpu(), "beside": main_stream not in shared.streams}


def replayed(
    layer: FusedMoE, config: VllmConfig, arrangement: Any, tokens: torch.Tensor, logits: torch.Tensor
) -> torch.Tensor:
    """The same from a graph that was captured with other tokens."""
    held, held_logits = torch.zeros_like(tokens), torch.zeros_like(logits)
    forward(layer, config, arrangement, held, held_logits)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        output = forward(layer, config, arrangement, held, held_logits)
    held.copy_(tokens)
    held_logits.copy_(logits)
    graph.replay()
    return output
