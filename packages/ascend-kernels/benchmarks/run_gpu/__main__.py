"""``python -m run_gpu [FAMILY …]``: the table of the families named, or of all.

Run with ``packages/ascend-kernels/src`` and ``packages/ascend-kernels/benchmarks`` on PYTHONPATH and
``ASCEND_KERNELS_BACKEND=triton``, on a machine with a CUDA device, torch and stock Triton. Peers that are not installed
are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import torch
import triton

import ascend_kernels
from run_gpu import (
    activation,
    attention,
    batch_invariant,
    fla,
    kda,
    lora,
    mamba,
    memory,
    moe,
    norm,
    rope,
    sampling,
    sparse,
    spec_decode,
)
from run_gpu.measure import copy_rate, host_time, line, table

FAMILIES = {
    "norm": norm.cases,
    "activation": activation.cases,
    "attention": attention.cases,
    "rope": rope.cases,
    "moe": moe.cases,
    "lora": lora.cases,
    "memory": memory.cases,
    "fla": fla.cases,
    "kda": kda.cases,
    "mamba": mamba.cases,
    "batch_invariant": batch_invariant.cases,
    "sampling": sampling.cases,
    "sparse": sparse.cases,
    "spec_decode": spec_decode.cases,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m run_gpu", description=__doc__)
    parser.add_argument("families", nargs="*", choices=[[], *FAMILIES])
    parser.add_argument("--runs", type=int, default=3, help="medians taken of each time; the table has their median")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    rate = copy_rate()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Triton {triton.__version__}")
    print(f"copy of 1 GiB: {rate:.0f} GB/s\n")
    lines = []
    for family in arguments.families or FAMILIES:
        for case in FAMILIES[family]():
            lines.append(line(case, rate, arguments.runs))
            print(table(lines[-1:]).splitlines()[-1], flush=True)
            if lines[-1]["problem"]:
                print(f"  {lines[-1]['problem']}", flush=True)
    print(f"\n{table(lines)}\n")
    x, weight = torch.randn(8, 4096, device="cuda", dtype=torch.bfloat16), torch.ones(4096, device="cuda")
    for name, call in {
        "ascend_kernels.rms_norm": lambda: ascend_kernels.rms_norm(x, weight),
        "ascend_kernels.swiglu": lambda: ascend_kernels.swiglu(x),
        "torch rms_norm": lambda: torch.nn.functional.rms_norm(x, (4096,), None, 1e-6),
    }.items():
        print(f"host µs per call, 8x4096: {name} {host_time(call):.1f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(lines, indent=1))
    if any(entry["problem"] for entry in lines):
        sys.exit(1)


if __name__ == "__main__":
    main()
