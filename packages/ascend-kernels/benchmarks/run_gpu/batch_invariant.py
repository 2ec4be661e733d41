"""Operators whose rows are the same bits in any batch, against torch's, which need not be."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from run_gpu.case import Case


def cases() -> Iterator[Case]:
    x, y = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) / 90 for _ in range(2))
    together = ascend_kernels.invariant_matmul(x, y)
    for row in (0, 100, 8191):
        alone = ascend_kernels.invariant_matmul(x[row : row + 1], y)
        if not torch.equal(alone[0], together[row]):
            raise AssertionError(f"row {row} of invariant_matmul alone differs from that in a batch")
    yield Case(
        "invariant_matmul 8192x8192x8192 bf16",
        lambda: ascend_kernels.invariant_matmul(x, y),
        lambda: x[:256].double() @ y.double(),
        "matmul",
        0,
        {"cuBLAS": lambda: x @ y},
        rows=256,
    )
    logits = torch.randn(1024, 151936, device="cuda")
    yield Case(
        "invariant_log_softmax 1024x151936 fp32",
        lambda: ascend_kernels.invariant_log_softmax(logits),
        lambda: logits[:64].double().log_softmax(-1),
        "reduction",
        2 * logits.nbytes,
        {"torch": lambda: logits.log_softmax(-1)},
        rows=64,
    )
