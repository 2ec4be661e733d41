"""Kimi Delta Attention: prefill in chunks."""

from __future__ import annotations

from collections.abc import Iterator

import ascend_kernels
from run_gpu.case import Case
from run_gpu.fla import delta_rule_case, delta_rule_inputs


def cases() -> Iterator[Case]:
    try:
        from fla.ops.kda import chunk_kda as peer
    except ModuleNotFoundError:
        peer = None
    yield delta_rule_case("chunk_kda", ascend_kernels.chunk_kda, delta_rule_inputs(True), peer)
