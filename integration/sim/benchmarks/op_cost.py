"""What an operator call costs on the simulated NPU and on the plain CPU, in microseconds of CPU time, in one run.

    python integration/sim/benchmarks/op_cost.py [--rounds 15] [--calls 400] [NAME …]

Rounds alternate between the two devices and the median counts, so that a busy machine disturbs both alike; the clock is
the thread's CPU time. References of torch_npu's operators are compared with the best formulation in torch on the CPU.

Every fresh result is a block of torch_npu's caching allocator, whose own cost the first line measures without operators
around it; the column `rest` is what remains of a difference without it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import torch
import torch_npu

Call = Callable[[], object]
TINY, MEDIUM = (8, 64), (256, 1024)
WRITES = ("add_", "mul out=", "copy_", "fill_", "zero_", "view", "slice", "transpose")
"""Names of calls that allocate nothing."""


def aten(device: str) -> Iterator[tuple[str, Call]]:
    """Calls by name; the same tensors for both devices."""
    torch.manual_seed(0)
    for label, shape in (("tiny", TINY), ("medium", MEDIUM)):
        x, y, out = torch.randn(shape).to(device), torch.randn(shape).to(device), torch.empty(shape, device=device)
        yield f"add {label}", lambda x=x, y=y: x + y
        yield f"add scalar {label}", lambda x=x: x + 1.5
        yield f"add_ {label}", lambda x=x, y=y: x.add_(y, alpha=0.0)
        yield f"mul out= {label}", lambda x=x, y=y, out=out: torch.mul(x, y, out=out)
        yield f"relu {label}", lambda x=x: torch.relu(x)
        yield f"copy_ {label}", lambda x=x, out=out: out.copy_(x)
        yield f"sum {label}", lambda x=x: x.sum(-1)
        yield f"to bfloat16 {label}", lambda x=x: x.to(torch.bfloat16)
    x, w = torch.randn(TINY).to(device), torch.randn(64, 64).to(device)
    index = torch.tensor([3, 1, 2]).to(device)
    mask = (torch.randn(TINY) > 0).to(device)
    yield "mm", lambda: x @ w
    yield "linear", lambda: torch.nn.functional.linear(x, w)
    yield "index", lambda: x[index]
    yield "index_select", lambda: x.index_select(0, index)
    yield "where", lambda: torch.where(mask, x, x)
    yield "cat", lambda: torch.cat([x, x])
    yield "argmax", lambda: x.argmax(-1)
    yield "softmax", lambda: x.softmax(-1)
    yield "fill_", lambda: x.fill_(1.0)
    yield "zero_", lambda: x.zero_()
    yield "arange", lambda: torch.arange(8, device=device)
    yield "zeros", lambda: torch.zeros(8, device=device)
    yield "empty", lambda: torch.empty(TINY, device=device)
    yield "empty_strided", lambda: torch.empty_strided(TINY, (64, 1), device=device)
    yield "view", lambda: x.view(64, 8)
    yield "slice", lambda: x[2:6]
    yield "transpose", lambda: x.t()


def references() -> Iterator[tuple[str, Call, Call]]:
    """An operator of torch_npu on the NPU, and what it computes by torch on the CPU."""
    functional = torch.nn.functional
    torch.manual_seed(0)
    for rows in (8, 256):
        x, residual = torch.randn(2, rows, 1024, dtype=torch.bfloat16)
        weight = torch.randn(1024, dtype=torch.bfloat16)
        nx, nresidual, nweight = x.npu(), residual.npu(), weight.npu()

        def norm(x: torch.Tensor = x, weight: torch.Tensor = weight) -> torch.Tensor:
            return functional.rms_norm(x, (1024,), weight, 1e-6)

        def add_norm(x: torch.Tensor = x, y: torch.Tensor = residual, w: torch.Tensor = weight) -> object:
            total = x + y
            return functional.rms_norm(total, (1024,), w, 1e-6), total

        def swiglu(x: torch.Tensor = x) -> torch.Tensor:
            gate, up = x.chunk(2, -1)
            return functional.silu(gate) * up

        def dynamic_quant(x: torch.Tensor = x) -> object:
            wide = x.float()
            scale = wide.abs().amax(-1, keepdim=True) / 127
            return (wide / scale).round().to(torch.int8), scale

        yield f"npu_rms_norm {rows}x1024", lambda x=nx, w=nweight: torch_npu.npu_rms_norm(x, w, 1e-6), norm
        yield (
            f"npu_add_rms_norm {rows}x1024",
            lambda x=nx, y=nresidual, w=nweight: torch_npu.npu_add_rms_norm(x, y, w, 1e-6),
            add_norm,
        )
        yield f"npu_swiglu {rows}x1024", lambda x=nx: torch_npu.npu_swiglu(x), swiglu
        yield f"npu_dynamic_quant {rows}x1024", lambda x=nx: torch_npu.npu_dynamic_quant(x), dynamic_quant
    query, table = torch.randn(1, 4, 64, 128, dtype=torch.bfloat16), torch.randn(1, 1, 64, 128, dtype=torch.bfloat16)
    nquery, ntable = query.npu(), table.npu()

    def rotary() -> torch.Tensor:
        first, second = query.chunk(2, -1)
        return query * table + torch.cat((-second, first), -1) * table

    yield "npu_rotary_mul", lambda: torch_npu.npu_rotary_mul(nquery, ntable, ntable), rotary


def microseconds(call: Call, calls: int) -> float:
    """CPU time of one call, averaged over `calls`."""
    start = time.thread_time_ns()
    for _ in range(calls):
        call()
    return (time.thread_time_ns() - start) / 1e3 / calls


def compare(npu: Call, cpu: Call, rounds: int, calls: int) -> tuple[float, float]:
    """Medians of alternating rounds, NPU first."""
    for call in (npu, cpu):
        first = microseconds(call, 20)
    calls = max(10, min(calls, int(20_000 / max(first, 1))))  # a round takes at most about 20 ms
    times = [(microseconds(npu, calls), microseconds(cpu, calls)) for _ in range(rounds)]
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


def allocator(rounds: int, blocks: int = 2000) -> tuple[float, float]:
    """Taking a block of 2 KiB from the device's allocator and giving it back, NPU and CPU."""

    def taking(device: str) -> Call:
        return lambda: torch.ops.ascend_sim.allocate_and_free(torch.device(device), 2048, blocks)

    npu, cpu = compare(taking("npu:0"), taking("cpu"), rounds, 1)
    return npu / blocks, cpu / blocks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("names", nargs="*", help="only names that contain one of these")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    def wanted(name: str) -> bool:
        return not arguments.names or any(part in name for part in arguments.names)

    torch.empty(1, device="npu")
    a, b = allocator(arguments.rounds)
    block = a - b
    print(f"{'aten':24s}{'npu':>10s}{'cpu':>10s}{'npu - cpu':>12s}{'rest':>10s}   µs")
    print(f"{'(allocator alone)':24s}{a:10.2f}{b:10.2f}{block:12.2f}")
    extra, rests = [], []
    for (name, npu), (_, cpu) in zip(aten("npu"), aten("cpu")):
        if wanted(name):
            a, b = compare(npu, cpu, arguments.rounds, arguments.calls)
            rest = a - b - (0 if name.startswith(WRITES) else block)
            extra.append(a - b)
            rests.append(rest)
            print(f"{name:24s}{a:10.2f}{b:10.2f}{a - b:12.2f}{rest:10.2f}", flush=True)
    if extra:
        middle, largest = statistics.median(extra), max(extra)
        print(f"{'median':24s}{'':20s}{middle:12.2f}{statistics.median(rests):10.2f}   largest {largest:.2f}")
    print(f"\n{'torch_npu':30s}{'npu':>10s}{'torch':>10s}{'ratio':>8s}   µs")
    for name, npu, cpu in references():
        if wanted(name):
            a, b = compare(npu, cpu, arguments.rounds, arguments.calls)
            print(f"{name:30s}{a:10.2f}{b:10.2f}{a / b:8.2f}", flush=True)


if __name__ == "__main__":
    main()
