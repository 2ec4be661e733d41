"""Attention sinks on a dense transformers model, computed by transformers' own gpt-oss attention.

gpt-oss, the public model family with sinks, is a mixture of experts. To see sinks alone, its attention function is run
inside a dense model: every attention layer gets a learned logit per head that joins the softmax and attends to nothing.
"""

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask
from transformers.models.gpt_oss.modeling_gpt_oss import eager_attention_forward

SINKS_ATTENTION = "eager_with_sinks"

AttentionInterface.register(SINKS_ATTENTION, eager_attention_forward)
AttentionMaskInterface.register(SINKS_ATTENTION, eager_mask)


def add_sinks(model: PreTrainedModel) -> None:
    """Give every attention layer a parameter `sinks` `[num_attention_heads]`, drawn from the global generator."""
    for layer in model.model.layers:
        layer.self_attn.sinks = nn.Parameter(torch.randn(model.config.num_attention_heads))
