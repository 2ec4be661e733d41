"""The exchange of a layer, from how the engine is set up."""

from __future__ import annotations

from vllm.config import get_current_vllm_config
from vllm.model_executor.layers.fused_moe.config import FusedMoEConfig, FusedMoEParallelConfig

from ascend_moe.vllm.all_to_all import AllToAllExchange
from ascend_moe.vllm.config import MoEConfig
from ascend_moe.vllm.exchange import AllGather, Exchange, NoExchange


def make_exchange(parallel: FusedMoEParallelConfig, config: MoEConfig, placement: str, most_rows: int) -> Exchange:
    """The exchange that a layer needs.

    Args:
        parallel: of the layer.
        config: what the user chose.
        placement: vLLM's ``expert_placement_strategy``.
        most_rows: see :class:`AllToAllExchange`.

    Raises:
        ValueError: all-to-all with experts that are not placed in order.
    """
    gather: Exchange = AllGather(parallel) if parallel.dp_size > 1 else NoExchange()
    if config.exchange == "all_gather" or not parallel.use_ep:
        return gather
    if placement != "linear":
        raise ValueError(
            f"the exchange {config.exchange!r} needs experts in order of their ranks, the placement is {placement!r}; "
            "use --expert-placement-strategy linear, or the exchange 'all_gather' (--additional-config, section 'moe')"
        )
    return AllToAllExchange(parallel, gather, most_rows)


def exchange_of(moe: FusedMoEConfig) -> Exchange:
    """As :func:`make_exchange`, for a layer of the engine that is being built."""
    engine, parallel = get_current_vllm_config(), moe.moe_parallel_config
    tokens = moe.max_num_tokens * parallel.dp_size * parallel.pcp_size
    most_rows = tokens * min(moe.experts_per_token, moe.num_local_experts)
    placement = engine.parallel_config.expert_placement_strategy
    return make_exchange(parallel, MoEConfig.of(engine), placement, most_rows)
