"""What goes together in calls of the attention operators."""

from __future__ import annotations

import torch

FLOATS = (torch.float16, torch.bfloat16, torch.float32)


def check_heads(operator: str, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, paged: bool) -> None:
    """Raises ValueError unless query, key and value have heads and sizes that go together."""
    dimensions = 4 if paged else 3
    form = "[blocks, page, kv_heads, size]" if paged else "[keys, kv_heads, size]"
    if (
        query.dim() != 3
        or (key.dim(), value.dim()) != (dimensions, dimensions)
        or key.shape[:-1] != value.shape[:-1]
        or key.shape[-1] != query.shape[-1]
        or key.shape[-2] == 0
        or query.shape[1] % max(key.shape[-2], 1)
    ):
        raise ValueError(
            f"{operator}: query {tuple(query.shape)}, keys {tuple(key.shape)}, values {tuple(value.shape)}: [tokens, "
            f"heads, size] and twice {form} go, heads a multiple of kv_heads, queries as long as keys"
        )
    if any(tensor.stride(-1) != 1 and tensor.shape[-1] > 1 for tensor in (query, key, value)):
        raise ValueError(f"{operator}: the elements of each row of query, keys and values must be neighbours")


def check_scales(
    operator: str,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    key_scale: torch.Tensor | None,
    value_scale: torch.Tensor | None,
) -> None:
    """Raises ValueError unless keys and values have the query's dtype, or are int8 with scales."""
    quantised = key.dtype == torch.int8
    good = query.dtype in FLOATS and key.dtype == value.dtype and (quantised or key.dtype == query.dtype)
    if not good or (key_scale is not None, value_scale is not None) != (quantised, quantised):
        raise ValueError(
            f"{operator}: query {query.dtype}, keys {key.dtype}, values {value.dtype}, key_scale "
            f"{'missing' if key_scale is None else 'given'}, value_scale "
            f"{'missing' if value_scale is None else 'given'}: one of fp16, bf16, fp32 throughout goes, or int8 "
            "keys and values with both scales"
        )
    for name, cache, scales in (("key_scale", key, key_scale), ("value_scale", value, value_scale)):
        if scales is not None and (scales.shape != cache.shape[-2:] or scales.dtype != torch.float32):
            raise ValueError(
                f"{operator}: {name} {scales.dtype} {tuple(scales.shape)}: fp32 {tuple(cache.shape[-2:])} goes, one "
                "scale per head and channel"
            )


def check_options(operator: str, query: torch.Tensor, sinks: torch.Tensor | None, window: int, soft_cap: float) -> None:
    """Raises ValueError for sinks that are not one per head, or a window or a cap below 0."""
    if sinks is not None and sinks.shape != query.shape[1:2]:
        raise ValueError(f"{operator}: sinks {tuple(sinks.shape)} for {query.shape[1]} heads: one per head goes")
    if window < 0 or soft_cap < 0:
        raise ValueError(f"{operator}: window {window}, soft_cap {soft_cap}: 0 (off) or more go")
