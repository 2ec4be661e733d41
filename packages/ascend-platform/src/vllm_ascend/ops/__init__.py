"""vLLM's custom layers on the vendor's fused operators."""

from __future__ import annotations


def register_ops() -> None:
    """Register this package's implementations for vLLM's custom layers; safe to call any number of times.

    A class name that already has an out-of-tree implementation keeps it: whoever registers first decides.
    """
    from vllm.model_executor.custom_op import op_registry_oot

    from vllm_ascend.ops.activation import ACTIVATIONS
    from vllm_ascend.ops.encoder_attention import ENCODER_ATTENTION
    from vllm_ascend.ops.layernorm import NORMS
    from vllm_ascend.ops.rotary import ROTARY_EMBEDDINGS

    for upstream, ours in (NORMS | ACTIVATIONS | ROTARY_EMBEDDINGS | ENCODER_ATTENTION).items():
        if upstream.__name__ not in op_registry_oot:
            upstream.register_oot(ours)
