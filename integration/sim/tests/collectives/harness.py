"""Runs torch.distributed's own tests (torch/testing/_internal/distributed/distributed_test.py) on HCCL over gloo.

    python harness.py FOLDER TEST…

The tests know CUDA with NCCL, and CPU tensors with other backends. With `BACKEND=nccl` in the environment the first
kind runs: torch_npu's own `transfer_to_npu` reads cuda as npu and nccl as hccl. With `BACKEND=hccl` the second kind
runs, with NPU as torch's default device. All tests run in processes that share one process group; each rank writes
its outcomes to FOLDER/RANK.json.
"""

import importlib
import json
import multiprocessing
import os
import sys
import unittest
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

WORLD = 4
AS_CUDA = os.environ["BACKEND"] == "nccl"


def load() -> tuple[Any, Any]:
    """torch's modules of the tests and of what they share."""
    warnings.simplefilter("ignore")
    if AS_CUDA:
        activities = torch.profiler.ProfilerActivity
        kept = activities.CPU
        importlib.import_module("torch_npu.contrib.transfer_to_npu")
        activities.CPU = kept  # transfer_to_npu puts its own there, which torch.autograd.profiler does not take
        # torch.distributed.broadcast asks what is taken for a GPU; torch_npu has no answer.
        torch.cuda.get_device_capability = lambda device=None: (0, 0)
        # Tests ask for the release of NCCL they need.
        importlib.import_module("torch.cuda.nccl").version = lambda: (2, 28, 0)  # type: ignore[attr-defined]
    tests = importlib.import_module("torch.testing._internal.distributed.distributed_test")
    return tests, importlib.import_module("torch.testing._internal.common_distributed")


def outcome(case: unittest.TestCase, skips: dict[str, str]) -> str:
    """'passed', or 'skipped: …' or 'failed: …'."""
    result = unittest.TestResult()
    case.run(result)
    if result.skipped:
        return f"skipped: {result.skipped[0][1]}"
    for _, text in result.errors + result.failures:
        last = text.strip().splitlines()[-1]
        # Decorators of the tests leave with an exit code to skip.
        return f"skipped: {skips[last]}" if last in skips else f"failed: {text}"
    return "passed"


def worker(rank: int, folder: str, names: list[str], tests: Any, common: Any) -> None:
    """One rank."""
    skips = {f"SystemExit: {skip.exit_code}": skip.message for skip in common.TEST_SKIPS.values()}
    case_class = type("Case", (tests.DistributedTest._DistTestBase, common.TestCase), {"rank": rank})
    torch.npu.set_device(rank)
    if not AS_CUDA:
        torch.set_default_device("npu")
    dist.init_process_group(
        os.environ["BACKEND"],
        init_method=f"file://{folder}/init",
        rank=rank,
        world_size=WORLD,
        timeout=timedelta(seconds=30),
    )
    found: dict[str, str] = {}
    for name in names:
        tests.Barrier.sync(timeout=60)
        found[name] = outcome(case_class(name), skips)
        Path(folder, f"{rank}.json").write_text(json.dumps(found))
    os._exit(0)  # the group is not taken down: ranks that failed would be waited for


def main() -> None:
    """Run the tests named on the command line in WORLD processes."""
    folder, *names = sys.argv[1:]
    for name in ("barrier", "test_dir"):
        Path(folder, name).mkdir()
    tests, common = load()
    # Tests of subgroups ask for eight ranks, because torch's own machines have few GPUs; three suffice.
    os.environ.update(WORLD_SIZE="8", TEMP_DIR=folder)
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=worker, args=(rank, folder, names, tests, common)) for rank in range(WORLD)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
