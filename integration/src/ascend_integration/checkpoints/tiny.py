"""The tiny random models that the platform must serve: one per attention shape, and the mixtures of experts."""

from ascend_integration.checkpoints.tiny_mixtures import MIXTURES
from ascend_integration.checkpoints.tiny_model import MIXED_LAYERS, VOCAB_SIZE, WINDOW, TinyModel

__all__ = ["TINY_MODELS", "VOCAB_SIZE", "TinyModel"]

_DENSE = (
    TinyModel("llama", "llama", "grouped-query attention", 0, {"head_dim": 16}),
    TinyModel(
        "llama-mha",
        "llama",
        "as many key-value heads as query heads, of a size the fused attention takes ungrouped",
        0,
        {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64},
    ),
    TinyModel("llama-mqa", "llama", "one key-value head", 1, {"num_key_value_heads": 1}),
    TinyModel("mistral", "mistral", "a sliding window in every layer", 1, {"head_dim": 16, "sliding_window": WINDOW}),
    TinyModel("qwen2", "qwen2", "biases on query, key and value", 6),
    TinyModel("qwen3", "qwen3", "normalised queries and keys, a head size of its own", 3, {"head_dim": 32}),
    TinyModel(
        "gemma3",
        "gemma3_text",
        "sliding and full layers with their own rotary bases, normalised queries and keys, scaled embeddings",
        8,
        {
            "head_dim": 32,
            "query_pre_attn_scalar": 32,
            "sliding_window": WINDOW,
            "layer_types": MIXED_LAYERS,
        },
    ),
    TinyModel("phi3", "phi3", "fused projections", 0, {"original_max_position_embeddings": 512}),
    TinyModel(
        "sinks",
        "qwen2",
        "attention sinks in sliding and full layers",
        8,
        {
            "use_sliding_window": True,
            "sliding_window": WINDOW,
            "layer_types": MIXED_LAYERS,
            "qkv_bias": True,
        },
        sinks=True,
    ),
)
TINY_MODELS = {model.name: model for model in (*_DENSE, *MIXTURES)}
