"""The exchange of a layer, from how the engine is set up."""

from __future__ import annotations

import torch
from vllm.config import get_current_vllm_config
from vllm.model_executor.layers.fused_moe.config import FusedMoEConfig, FusedMoEParallelConfig
from vllm.platforms import current_platform

from ascend_moe.comm import Method
from ascend_moe.comm.mc2 import DTYPES
from ascend_moe.vllm.config import MoEConfig
from ascend_moe.vllm.exchange import AllGather, Exchange, NoExchange
from ascend_moe.vllm.layer_facts import LayerFacts
from ascend_moe.vllm.per_step import PerStepExchange

_FUSED_TOKENS = {"A2": 256}
_FUSED_TOKENS_ELSEWHERE = 512


def fused_capacity(soc: str, most_tokens: int) -> int:
    """Tokens of a rank that the fused operators are set up for: no more than a step has, or than the operators take."""
    return min(most_tokens, _FUSED_TOKENS.get(soc, _FUSED_TOKENS_ELSEWHERE))


def make_exchange(
    parallel: FusedMoEParallelConfig, layer: LayerFacts, dtype: torch.dtype, config: MoEConfig, placement: str
) -> Exchange:
    """The exchange that a layer needs.

    Args:
        parallel: of the layer.
        layer: see there.
        dtype: of the tokens.
        config: what the user chose.
        placement: vLLM's ``expert_placement_strategy``.

    Raises:
        ValueError: a method is wanted that needs experts in order of their ranks or another dtype.
    """
    gather: Exchange = AllGather(parallel) if parallel.dp_size > 1 else NoExchange()
    wanted = None if config.exchange == "auto" else Method(config.exchange)
    if not parallel.use_ep or wanted is Method.ALL_GATHER:
        return gather
    if wanted is Method.FUSED_DISPATCH and dtype not in DTYPES:
        raise ValueError(
            f"the exchange {config.exchange!r} takes float16 and bfloat16, the model is {str(dtype)[6:]}; use --dtype, "
            "or the exchange 'auto' (--additional-config, section 'moe')"
        )
    if placement != "linear":
        if wanted is None:
            return gather
        raise ValueError(
            f"the exchange {config.exchange!r} needs experts in order of their ranks, the placement is {placement!r}; "
            "use --expert-placement-strategy linear, or the exchange 'all_gather' (--additional-config, section 'moe')"
        )
    if layer.possible_methods(dtype, wanted) == {Method.ALL_GATHER}:
        return gather
    return PerStepExchange(parallel, layer, gather, wanted)


def exchange_of(moe: FusedMoEConfig) -> Exchange:
    """As :func:`make_exchange`, for a layer of the engine that is being built."""
    engine, parallel = get_current_vllm_config(), moe.moe_parallel_config
    soc = current_platform.soc_profile().name
    # The tensor parallel ranks send a part of the tokens each.
    most_tokens = -(-moe.max_num_tokens // engine.parallel_config.tensor_parallel_size)
    layer = LayerFacts(
        soc=soc,
        ranks=parallel.ep_size,
        local_experts=moe.num_local_experts,
        top_k=moe.experts_per_token,
        most_tokens=most_tokens,
        capacity=fused_capacity(soc, most_tokens),
    )
    placement = engine.parallel_config.expert_placement_strategy
    return make_exchange(parallel, layer, moe.in_dtype, MoEConfig.of(engine), placement)
