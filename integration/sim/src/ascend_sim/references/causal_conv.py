# SPDX-License-Identifier: Apache-2.0
"""Causal depthwise convolution along a sequence: ``y_i = sum_j w_j x_(i - K + 1 + j)`` with a kernel of K = 3.

What precedes a sequence is zero, or comes from a cache of its last inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test

_WIDTH = 3
_PAGE = cann_doc("ops-transformer", "attention/fused_causal_conv1d/README.md")


def _convolve(padded: Tensor, weight: Tensor) -> Tensor:
    """[K - 1 + L, ...] and weight [K, D] to [L, ...], in float32."""
    length = padded.shape[0] - _WIDTH + 1
    out = padded[:length] * weight[0]
    for j in range(1, _WIDTH):
        out.addcmul_(padded[j : j + length], weight[j])
    return out


def _check_width(op: str, weight: Tensor, size: int, multiple: int) -> None:
    if list(weight.shape) != [_WIDTH, size]:
        raise limits.refuse(op, "weight.shape", list(weight.shape), [_WIDTH, size])
    if size % multiple:
        raise limits.refuse(op, "weight.shape[1]", size, f"multiples of {multiple}")


@reference("npu::npu_masked_causal_conv1d", source=op_plugin_test("test_npu_masked_causal_conv1d"), grade=Grade.GOLDEN)
def npu_masked_causal_conv1d(input: Tensor, weight: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Convolve ``input`` [S, B, H] along S; results where ``mask`` [B, S] is False are 0."""
    op = "npu_masked_causal_conv1d"
    _check_width(op, weight, input.shape[-1], limits.numbers(op)["size_multiple"])
    padded = torch.cat((input.new_zeros(_WIDTH - 1, *input.shape[1:]), input)).float()
    out = _convolve(padded, weight.float()).to(input.dtype)
    return out if mask is None else out.masked_fill_(~mask.t().unsqueeze(-1), 0)


@dataclass(frozen=True, slots=True)
class _Sequence:
    """What one sequence reads and writes.

    Args:
        read, write: Cache lines of its history before and after.
        computed: Tokens computed before, if known.
        offset: First cache entry used, or None for the last K - 1.
        first, last: Table columns of its first and last token's blocks, with a table of lines per block.
        lines: That table's row.
    """

    read: int
    write: int
    computed: int | None
    offset: int | None
    first: int = 0
    last: int = 0
    lines: tuple[int, ...] = ()


def _sequences(op: str, given: dict[str, Any], batch: int) -> list[_Sequence | None]:
    """Per sequence; None for one whose cache line is ``pad_slot_id``."""

    def column(name: str) -> list[int | None]:
        tensor = given.get(name)
        return [None] * batch if tensor is None else [int(n) for n in tensor.tolist()]

    computed, accepted = column("num_computed_tokens"), column("num_accepted_tokens")
    offsets = [None if n is None else n - 1 for n in accepted]
    table = given.get("cache_indices")
    if table is None or table.dim() == 1:
        lines = list(range(batch)) if table is None else table.tolist()
        pad = given.get("pad_slot_id", -1)
        return [None if n == pad else _Sequence(n, n, c, o) for n, c, o in zip(lines, computed, offsets, strict=True)]
    names = ("initial_state_idx", "block_idx_first_scheduled_token", "block_idx_last_scheduled_token")
    for name in (*names, "num_computed_tokens"):
        if given.get(name) is None:
            raise limits.refuse(op, name, None, "a tensor [B] with cache_indices [B, blocks]")
    found: list[_Sequence | None] = []
    for i, row in enumerate(table.tolist()):
        start, first, last = (int(given[name][i]) for name in names)
        found.append(_Sequence(row[start], row[last], computed[i], offsets[i], first, last, tuple(row)))
    return found


def _fused(op: str, x: Tensor, weight: Tensor, states: Tensor, given: dict[str, Any]) -> Tensor:
    _check_width(op, weight, x.shape[-1], limits.numbers(op)["size_multiple"])
    for name in ("initial_state_mode", "bias"):
        if given.get(name) is not None:
            raise limits.refuse(op, name, "a tensor", None)
    if given.get("activation", "None") != "None":
        raise limits.refuse(op, "activation", repr(given["activation"]), "'None'")
    mode = given.get("conv_mode", "default")
    if mode not in ("default", "pangu"):
        raise limits.refuse(op, "conv_mode", repr(mode), "'default', 'pangu'")
    if mode == "pangu" and given.get("num_computed_tokens") is None:
        raise limits.refuse(op, "num_computed_tokens", None, "a tensor [B] with conv_mode 'pangu'")
    if x.dim() == 2:
        starts = given.get("query_start_loc")
        if starts is None:
            raise limits.refuse(op, "query_start_loc", None, "a tensor [B + 1] for packed tokens")
        bounds = [int(n) for n in starts.tolist()]
    else:
        bounds = list(range(0, x.shape[0] * x.shape[1] + 1, x.shape[1]))
    tokens, out = x.flatten(0, -2), torch.zeros_like(x).flatten(0, -2)
    kernel = weight.float()
    for sequence, start, stop in zip(_sequences(op, given, len(bounds) - 1), bounds, bounds[1:], strict=False):
        if sequence is None:
            continue
        part = tokens[start:stop]
        padded = _history(sequence, part, states, given.get("block_size", 128))
        result = _convolve(padded.float(), kernel)
        if mode == "pangu":
            result[: max(_WIDTH - 1 - (sequence.computed or 0), 0)] = 0
        if given.get("residual_connection", 0):
            result += part.float()
        out[start:stop] = result.to(x.dtype)
    return out.view(x.shape)


def _history(sequence: _Sequence, part: Tensor, states: Tensor, block: int) -> Tensor:
    """The K - 1 inputs before a sequence and the sequence; updates the cache lines of ``states``."""
    size = states.shape[1]
    if sequence.computed == 0:
        offset, cached = 0, part.new_zeros(_WIDTH - 1, part.shape[1])
    else:
        offset = size - (_WIDTH - 1) if sequence.offset is None else sequence.offset
        cached = states[sequence.read, : offset + _WIDTH - 1]
    whole = torch.cat((cached, part))
    kept = min(size, whole.shape[0])
    padded = whole[offset:]
    states[sequence.write, size - kept :] = whole[-kept:]
    if sequence.lines:
        length, computed = part.shape[0], sequence.computed or 0
        rest = (length - (block - computed % block)) % block
        boundary = length - rest - (block if rest == 0 else 0)
        count = sequence.last - sequence.first
        for chunk in range(count):
            at = boundary - (count - chunk - 1) * block
            line = sequence.lines[sequence.first + chunk]
            states[line, size - _WIDTH + 1 :] = padded[at : at + _WIDTH - 1]
    return padded


@reference(
    "npu::npu_fused_causal_conv1d",
    source=_PAGE,
    grade=Grade.DOCUMENTED,
    note="sequences whose cache line is pad_slot_id give zeros; the page leaves them open",
)
def npu_fused_causal_conv1d(x: Tensor, weight: Tensor, conv_states: Tensor, **given: Any) -> Tensor:
    """Convolve each sequence after its history and write its last inputs to its line of ``conv_states``.

    Shapes: x [T, D] with ``query_start_loc`` [B + 1], or [B, S, D]; conv_states [lines, state length, D]; cache_indices
    [B], or [B, blocks] (automatic prefix caching: a line per block of ``block_size`` tokens).
    """
    return _fused("npu_fused_causal_conv1d", x, weight, conv_states, given)


@reference("npu::npu_fused_causal_conv1d_v2", source=_PAGE, grade=Grade.DOCUMENTED)
def npu_fused_causal_conv1d_v2(x: Tensor, weight: Tensor, conv_states: Tensor, **given: Any) -> None:
    """:func:`npu_fused_causal_conv1d` into ``x``."""
    x.copy_(_fused("npu_fused_causal_conv1d", x.clone(), weight, conv_states, given))
