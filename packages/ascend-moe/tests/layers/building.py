"""vLLM's layer on one rank, its weights and the parallel state around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from vllm.config import ParallelConfig, SchedulerConfig, VllmConfig, set_current_vllm_config
from vllm.distributed import (
    destroy_model_parallel,
    get_tensor_model_parallel_rank,
    get_tp_group,
    init_distributed_environment,
    initialize_model_parallel,
)
from vllm.forward_context import set_forward_context
from vllm.model_executor.layers.fused_moe import FusedMoE
from vllm.model_executor.models.utils import sequence_parallel_chunk
from vllm.platforms import current_platform

from .cases import (
    CORRECTION,
    EXPERTS,
    HIDDEN,
    INTERMEDIATE,
    SHARED,
    TOKENS,
    WORLD,
    Arrangement,
    parameters,
    shared_parameters,
)

CORRECTED = {
    "top_k": 3,
    "renormalize": True,
    "use_grouped_topk": True,
    "num_expert_group": 2,
    "topk_group": 1,
    "scoring_func": "sigmoid",
    "routed_scaling_factor": 2.5,
}


@contextmanager
def engine(arrangement: Arrangement, rank: int, moe: dict[str, Any], **eplb: Any) -> Iterator[VllmConfig]:
    """The configuration of one rank's engine as the current one, with vLLM's groups of ranks."""
    current_platform.pre_register_and_update()
    balancing = {"enable_eplb": True, "eplb_config": eplb} if eplb else {}
    parallel = ParallelConfig(
        data_parallel_size=arrangement.data,
        tensor_parallel_size=arrangement.tensor,
        pipeline_parallel_size=arrangement.pipeline,
        data_parallel_rank=arrangement.replica_of(rank),
        enable_expert_parallel=True,
        **balancing,
    )
    scheduler = SchedulerConfig(max_num_batched_tokens=16, max_num_seqs=16, max_model_len=16, is_encoder_decoder=False)
    config = VllmConfig(parallel_config=parallel, scheduler_config=scheduler, additional_config={"moe": moe})
    with set_current_vllm_config(config):
        within = rank % (arrangement.tensor * arrangement.pipeline)
        init_distributed_environment(WORLD // arrangement.data, within, "env://", rank, "hccl")
        initialize_model_parallel(arrangement.tensor, arrangement.pipeline, backend="hccl")
        yield config
        destroy_model_parallel()


class SharedExpert(torch.nn.Module):
    """This rank's columns of a shared expert, or all of them with sequence parallelism."""

    def __init__(self, arrangement: Arrangement, dtype: torch.dtype) -> None:
        super().__init__()
        gate_up, down = shared_parameters(dtype)
        if not arrangement.sequence_parallel:
            each = SHARED // arrangement.tensor
            mine = slice(get_tensor_model_parallel_rank() * each, (get_tensor_model_parallel_rank() + 1) * each)
            gate_up = torch.cat((gate_up[:SHARED][mine], gate_up[SHARED:][mine]))
            down = down[:, mine].contiguous()
        self.gate_up, self.down = gate_up.npu(), down.npu()
        self.streams: set[int] = set()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        self.streams.add(torch.npu.current_stream().npu_stream)
        gate, up = F.linear(tokens, self.gate_up).chunk(2, dim=-1)
        return F.linear(F.silu(gate) * up, self.down)


def build(arrangement: Arrangement, name: str, dtype: torch.dtype, redundant: int = 0) -> FusedMoE:
    """A layer with its weights, as some of vLLM's models load them: redundant physical experts have none."""
    with torch.device("npu"):
        layer = FusedMoE(
            EXPERTS,
            hidden_size=HIDDEN,
            intermediate_size=INTERMEDIATE,
            params_dtype=dtype,
            prefix=name,
            e_score_correction_bias=CORRECTION.npu(),
            is_sequence_parallel=arrangement.sequence_parallel,
            shared_experts=SharedExpert(arrangement, dtype),
            enable_eplb=redundant > 0,
            num_redundant_experts=redundant,
            **CORRECTED,
        )
    local = (EXPERTS + redundant) // layer.ep_size
    for name, weight in [("gate_up", layer.w13_weight), ("down", layer.w2_weight)]:
        weight.data.fill_(torch.nan)
        mine = parameters(dtype)[name][layer.ep_rank * local : (layer.ep_rank + 1) * local]
        weight.data[: len(mine)].copy_(mine)
    layer.quant_method.process_weights_after_loading(layer)
    return layer


def forward(
    layer: FusedMoE, config: VllmConfig, arrangement: Arrangement, tokens: torch.Tensor, logits: torch.Tensor
) -> torch.Tensor:
    """What a model does with its tokens: all of them go in, all come out."""
    everyones = torch.tensor(TOKENS[: arrangement.data], dtype=torch.int32)
    with set_forward_context(None, config, num_tokens=len(tokens), num_tokens_across_dp=everyones):
        if not arrangement.sequence_parallel:
            return layer(tokens, logits)
        part = layer(sequence_parallel_chunk(tokens), sequence_parallel_chunk(logits))
        return get_tp_group().all_gather(part, 0)[: len(tokens)]
