"""vLLM's side of the dense model with attention sinks (`ascend_integration.oracle.sinks` is the oracle's)."""

import torch
from torch import nn
from vllm.config import VllmConfig, get_current_vllm_config
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.model_loader.weight_utils import sharded_weight_loader
from vllm.model_executor.models.llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM
from vllm.model_executor.utils import set_weight_attrs


class SinksAttention(LlamaAttention):
    """Llama's attention with a learned sink logit per head handed to the attention backend."""

    def __init__(self, *args: object, prefix: str, **kwargs: object) -> None:
        super().__init__(*args, prefix=prefix, **kwargs)
        self.sinks = nn.Parameter(torch.empty(self.num_heads), requires_grad=False)
        set_weight_attrs(self.sinks, {"weight_loader": sharded_weight_loader(0)})
        plain = self.attn
        vllm_config = get_current_vllm_config()
        # The layer made by Llama's constructor gives up its name to the one with sinks.
        del vllm_config.compilation_config.static_forward_context[plain.layer_name]
        self.attn = Attention(
            self.num_heads,
            self.head_dim,
            self.scaling,
            num_kv_heads=self.num_kv_heads,
            cache_config=vllm_config.cache_config,
            per_layer_sliding_window=plain.sliding_window,
            prefix=plain.layer_name,
            sinks=self.sinks,
        )


class SinksDecoderLayer(LlamaDecoderLayer):
    """Llama's layer with `SinksAttention`."""

    def __init__(self, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__(vllm_config, prefix=prefix, attn_layer_type=SinksAttention)


class SinksForCausalLM(LlamaForCausalLM):
    """Llama with sinks; the checkpoint's `qkv_bias` and `layer_types` are honoured by vLLM's Llama itself."""

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix, layer_type=SinksDecoderLayer)
