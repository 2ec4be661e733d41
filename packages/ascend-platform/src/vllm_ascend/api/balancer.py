"""What balances the load of experts over their ranks while an engine serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch
    from vllm.config import ModelConfig, ParallelConfig
    from vllm.model_executor.models.interfaces import MixtureOfExperts


class ExpertBalancer(Protocol):
    """The object behind ``--enable-eplb``, one for a worker; what vLLM's runner asks of its ``EplbState``.

    All ranks of the expert parallel group make the same calls in the same order.
    """

    is_async: bool
    """True makes vLLM start a thread of its own through ``start_async_loop``, which no balancer here needs."""

    def __init__(self, parallel_config: ParallelConfig, device: torch.device) -> None:
        """Called before the model is built, with the engine's configuration as vLLM's current one.

        Args:
            parallel_config: its ``eplb_config`` says how often to balance and over how many steps to count.
            device: of the worker.
        """

    def add_model(self, model: MixtureOfExperts, model_config: ModelConfig) -> None:
        """Balance a model whose weights have been loaded: the main one or a draft model."""
        ...

    def step(self, is_dummy: bool = False, is_profile: bool = False, log_stats: bool = False) -> None:
        """Called after every forward pass.

        Args:
            is_dummy: the pass served no request.
            is_profile: take as much memory as balancing ever will, and give it back.
            log_stats: report the balance.
        """
        ...
