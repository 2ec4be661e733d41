# SPDX-License-Identifier: Apache-2.0
"""Operators that communicate, between spawned processes of one simulated NPU each.

Every process draws the same values for all ranks, so that each can tell what it must receive.
"""

from __future__ import annotations

import datetime
import os
import socket
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from ascend_sim.references import limits
from ascend_sim.references.registry import registered_on_cpu

from .calls import call
from .oracle import as_float64, assert_close
from .quant.steps import assert_same_steps, by_token

WORLD, N, K, H = 2, 5, 3, 16
DISPATCH, COMBINE = "npu::npu_moe_distribute_dispatch", "npu::npu_moe_distribute_combine"


def _port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _start(rank: int, port: int) -> str:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.npu.set_device(rank)
    dist.init_process_group("hccl", rank=rank, world_size=WORLD, timeout=datetime.timedelta(seconds=60))
    torch.manual_seed(0)
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("npu"))
    return str(backend.get_hccl_comm_name(rank))


def _expected_rows(experts: torch.Tensor, mask: np.ndarray, mine: range, routed: int) -> list[tuple[int, int, int]]:
    """(source rank, token, choice) of what the experts in ``mine`` get: by expert, rank and token."""
    found = []
    for expert in mine:
        for source in range(WORLD):
            for token in range(N):
                for choice in range(K):
                    if mask[source, token] and int(experts[source, token, choice]) == expert < routed:
                        found.append((source, token, choice))
    return found


def _check_moe(rank: int, name: str, version: str, shared: int, masked: bool, quant: int) -> None:
    routed = 4 - shared
    x, weights = torch.randn(WORLD, N, H).bfloat16(), torch.rand(WORLD, N, K)
    experts = torch.stack([torch.randperm(routed)[:K] for _ in range(WORLD * N)]).int().view(WORLD, N, K)
    mask = torch.ones(WORLD, N, dtype=torch.bool)
    if masked:
        mask[0, 3:] = mask[1, 4:] = False
    options: dict[str, Any] = {"shared_expert_rank_num": shared, "x_active_mask": mask[rank] if masked else None}
    group = (name, WORLD, rank, routed)
    smooth = torch.rand(routed + shared, H) + 0.5 if quant else None
    got = call(
        DISPATCH + version,
        x[rank],
        experts[rank],
        *group,
        scales=smooth,
        quant_mode=quant,
        global_bs=N * WORLD,
        **options,
    )
    rows, scales, index, numbers, counts, _, _ = got
    local = routed // (WORLD - shared)
    if rank < shared:
        expected = [(source, token, -1) for source in range(WORLD) for token in range(N) if mask[source, token]]
        lanes = [[sum(1 for s, _, _ in expected if s == source) for source in range(WORLD)]]
        factor_rows = [0] * len(expected)
    else:
        first = (rank - shared) * local
        expected = _expected_rows(experts, mask.numpy(), range(first, first + local), routed)
        of = [int(experts[s, t, c]) for s, t, c in expected]
        pairs = list(zip(of, expected, strict=True))
        lanes = [
            [sum(1 for e, (s, _, _) in pairs if (e, s) == (expert, source)) for source in range(WORLD)]
            for expert in range(first, first + local)
        ]
        factor_rows = [expert + shared for expert in of]
    sent = torch.stack([x[source, token] for source, token, _ in expected])
    if quant:
        assert smooth is not None
        steps, factors = by_token(as_float64(sent) * as_float64(smooth)[factor_rows])
        np.testing.assert_allclose(as_float64(scales)[: len(expected)], factors, rtol=1e-5)
        assert_same_steps(rows[: len(expected)], steps, 0.03)
    else:
        assert torch.equal(rows[: len(expected)], sent)
    assert numbers.tolist() == [sum(lane) for lane in lanes]
    assert counts.tolist() == np.cumsum(np.concatenate(lanes)).tolist()
    if version == "":
        flat = experts[rank].flatten().tolist()
        want = [flat[:i].count(expert) for i, expert in enumerate(flat)]
        kept = mask[rank].repeat_interleave(K)
        assert index[kept].tolist() == [value for value, keep in zip(want, kept.tolist(), strict=True) if keep]
    if quant:
        return
    # The experts' results: row * (expert + 2); those of the shared expert: row * 1.
    times = torch.tensor([1.0 if c < 0 else float(experts[s, t, c]) + 2 for s, t, c in expected])
    results = rows.clone()
    results[: len(expected)] = (sent.float() * times[:, None]).bfloat16()
    extra = torch.randn(WORLD, N, H).bfloat16()
    if version == "":  # the vendor's Meta kernel does not know shared_expert_x
        extra.zero_()
    else:
        options["shared_expert_x"] = extra[rank]
    out = call(COMBINE + version, results, experts[rank], index, counts, weights[rank], *group, **options)
    factor = (as_float64(weights[rank]) * (as_float64(experts[rank]) + 2)).sum(1) + (1 if shared else 0)
    total = as_float64(x[rank]) * factor[:, None] + as_float64(extra[rank])
    keep = mask[rank]
    assert_close(out[keep], total[keep.numpy()], 5e-2)


def _check_extras(rank: int, name: str) -> None:
    """Weights that travel along, a tensor parallel group of one, running sums of rows, and microscaled rows."""
    x, weights = torch.randn(WORLD, N, H).bfloat16(), torch.rand(WORLD, N, K)
    experts = torch.stack([torch.randperm(4)[:K] for _ in range(WORLD * N)]).int().view(WORLD, N, K)
    group = (name, WORLD, rank, 4)
    options = {"expert_scales": weights[rank], "tp_world_size": 1, "expert_token_nums_type": 0}
    expected = _expected_rows(experts, np.ones((WORLD, N), dtype=bool), range(2 * rank, 2 * rank + 2), 4)
    for version in ("", "_v2"):
        got = call(DISPATCH + version, x[rank], experts[rank], *group, **options)
        assert got[3].tolist()[-1] == len(expected)
        assert got[5].tolist() == [len(expected)]
        assert got[6][: len(expected)].tolist() == [float(weights[s, t, c]) for s, t, c in expected]
    with limits.as_family(limits.Family.A5):
        rows, scales, *_ = call(f"{DISPATCH}_v2", x[rank], experts[rank], *group, quant_mode=4, y_dtype=24)
        sent = torch.stack([x[source, token] for source, token, _ in expected])
        elements, codes = torch.ops.npu.npu_dynamic_mx_quant(sent, dst_type=24)
    assert torch.equal(rows[: len(sent)].view(torch.uint8), elements.view(torch.uint8))
    assert torch.equal(scales[: len(sent)], codes.flatten(1))
    for wrong, message in (((name, 3, rank, 4), "world size is 3"), ((name, WORLD, 1 - rank, 4), "rank is")):
        with pytest.raises(RuntimeError, match=message):
            torch.ops.npu.npu_moe_distribute_dispatch(x[rank], experts[rank], *wrong)
    with pytest.raises(RuntimeError, match="no HCCL group of this process has the communicator name 'nobody'"):
        torch.ops.npu.npu_moe_distribute_dispatch(x[rank], experts[rank], "nobody", *group[1:])


def _check_copies(rank: int, name: str) -> None:
    """Expert 2 adds nothing and expert 3 the token itself."""
    x = torch.randn(N, H).bfloat16()
    experts = torch.tensor([[0, 2, 3]] * N, dtype=torch.int32)
    weights = torch.tensor([[0.5, 0.25, 2.0]] * N)
    options = {"zero_expert_num": 1, "copy_expert_num": 1}
    group = (name, WORLD, rank, 2)
    rows, _, assist, _, counts, _, _ = call(f"{DISPATCH}_v2", x, experts, *group, global_bs=N * WORLD, **options)
    out = call(f"{COMBINE}_v2", rows, experts, assist, counts, weights, *group, ori_x=x, **options)
    assert_close(out, as_float64(x) * 2.5, 2e-2)
    residual, gamma = torch.randn(N, 1, H).bfloat16(), torch.rand(H).bfloat16()
    norm = f"{COMBINE}_add_rms_norm"
    arguments = (rows, experts, assist, counts, weights, residual, gamma, *group)
    with pytest.raises(RuntimeError, match="the SoC family is A2; the hardware allows A3, A5"):
        call(norm, *arguments, ori_x=x, **options)
    with limits.as_family(limits.Family.A3):
        y, rstd, total = call(norm, *arguments, ori_x=x, **options)
    assert_close(total[:, 0], as_float64(x) * 2.5 + as_float64(residual[:, 0]), 5e-2)
    values = as_float64(total)
    expected = 1 / np.sqrt((values**2).mean(-1, keepdims=True) + 1e-6)
    assert_close(rstd, expected, 1e-5)
    assert_close(y, values * expected * as_float64(gamma), 2e-2)


def _check_products(rank: int, name: str) -> None:
    x, w, bias = torch.randn(WORLD, 4, H).half(), torch.randn(WORLD, H, 8).half(), torch.randn(8).half()
    parts = as_float64(x) @ as_float64(w)
    out = call("npu::npu_mm_all_reduce_base", x[rank], w[rank], name, bias=bias)
    assert_close(out, parts.sum(0) + WORLD * as_float64(bias), 1e-2)
    out = call("npu::npu_mm_reduce_scatter_base", x[rank], w[rank], name, WORLD)
    assert_close(out, parts.sum(0)[2 * rank : 2 * rank + 2], 1e-2)
    out, gathered = call("npu::npu_all_gather_base_mm", x[rank], w[0], name, WORLD)
    assert torch.equal(gathered, x.flatten(0, 1))
    assert_close(out, as_float64(gathered) @ as_float64(w[0]), 1e-2)
    codes, weight = (torch.randint(-128, 128, s, dtype=torch.int8) for s in ((WORLD, 4, H), (WORLD, H, 8)))
    scale, token = torch.rand(8).bfloat16(), torch.rand(WORLD, 4) * 1e-2
    out = call(
        "npu::npu_mm_all_reduce_base", codes[rank], weight[rank], name, dequant_scale=scale, pertoken_scale=token[rank]
    )
    expected = as_float64(codes) @ as_float64(weight) * as_float64(scale) * as_float64(token)[..., None]
    assert_close(out, expected.sum(0), 1.0)


def _worker(rank: int, port: int) -> None:
    name = _start(rank, port)
    with registered_on_cpu():
        _check_all(rank, name)
    dist.barrier()
    dist.destroy_process_group()


def _check_all(rank: int, name: str) -> None:
    for version in ("", "_v2"):
        for shared in (0, 1):
            _check_moe(rank, name, version, shared, False, 0)
        _check_moe(rank, name, version, 0, True, 0)
        _check_moe(rank, name, version, 1, False, 2)
    _check_extras(rank, name)
    _check_copies(rank, name)
    _check_products(rank, name)


def test_operators_that_communicate() -> None:
    mp.spawn(_worker, args=(_port(),), nprocs=WORLD, join=True)
