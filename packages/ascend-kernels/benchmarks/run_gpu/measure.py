"""Times and errors of a case."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from triton.testing import do_bench

from ascend_kernels.target import ASCEND_910B1, use_target
from ascend_kernels.testing import assert_close, relative_error
from run_gpu.case import Case


def _results(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


def check(case: Case) -> tuple[float, str]:
    """The largest relative error against float64, and what is out of tolerance with which plan; raises nothing."""
    expected = _results(case.reference())
    worst, problems = 0.0, []
    for plan in ("cuda", "ascend"):
        if plan == "ascend":
            with use_target(ASCEND_910B1):
                actual = _results(case.call())
        else:
            actual = _results(case.call())
        for ours, right in zip(actual, expected, strict=True):
            part = ours if case.rows is None else ours[: case.rows]
            worst = max(worst, relative_error(part, right))
            try:
                assert_close(part, right, case.kind)
            except AssertionError as error:
                problems.append(f"{plan} plan: {' '.join(str(error).split())[:120]}")
    return worst, "; ".join(problems)


def device_time(function: Callable[[], Any], runs: int) -> tuple[float, float]:
    """Median µs over ``runs`` medians, and their spread in percent."""
    medians = [do_bench(function, warmup=25, rep=60, return_mode="median") * 1e3 for _ in range(runs)]
    middle = statistics.median(medians)
    return middle, 100 * (max(medians) - min(medians)) / middle


def host_time(function: Callable[[], Any], calls: int = 200) -> float:
    """µs that a call keeps the host busy, while the device lags behind."""
    function()
    torch.cuda.synchronize()
    times = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(calls // 5):
            function()
        times.append((time.perf_counter() - started) / (calls // 5) * 1e6)
        torch.cuda.synchronize()
    return statistics.median(times)


def copy_rate() -> float:
    """GB/s of a device-to-device copy of 1 GiB, bytes read and written."""
    source = torch.randint(255, (2**30,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / device_time(lambda: target.copy_(source), 3)[0] / 1e3


def line(case: Case, rate: float, runs: int) -> dict[str, Any]:
    """Everything about a case, numerics first."""
    error, problem = check(case)
    ours, spread = device_time(case.timed or case.call, runs)
    result: dict[str, Any] = {
        "case": case.name,
        "error": error,
        "problem": problem,
        "us": ours,
        "spread": spread,
        "gbps": case.bytes / ours / 1e3,
        "of_copy": case.bytes / ours / 1e3 / rate,
        "peers": {},
    }
    for name, peer in case.peers.items():
        result["peers"][name] = device_time(peer, runs)[0]
    return result


def table(lines: Iterable[dict[str, Any]]) -> str:
    """A Markdown table."""
    rows = ["| case | error | µs (spread) | GB/s | of copy | peer µs | peer / ours |", "|---|---|---|---|---|---|---|"]
    for entry in lines:
        peers = ", ".join(f"{name} {us:.1f}" for name, us in entry["peers"].items())
        ratio = min(entry["peers"].values()) / entry["us"] if entry["peers"] else float("nan")
        mark = " WRONG" if entry["problem"] else ""
        rows.append(
            f"| {entry['case']} | {entry['error']:.1e}{mark} | {entry['us']:.1f} ({entry['spread']:.0f} %) | "
            f"{entry['gbps']:.0f} | {entry['of_copy']:.0%} | {peers} | {ratio:.2f} |"
        )
    return "\n".join(rows)
