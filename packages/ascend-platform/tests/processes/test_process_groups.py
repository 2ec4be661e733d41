"""Process groups beside torch.distributed's default one."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import torch
from vllm.distributed.utils import stateless_init_torch_distributed_process_group
from vllm.utils.network_utils import get_open_port
from vllm.platforms import current_platform

torch.npu.set_device(0)
group = stateless_init_torch_distributed_process_group("127.0.0.1", get_open_port(), 0, 1, backend="hccl")
value = torch.full((3,), 5.0, device="npu:0")
group.allreduce([value]).wait()
print("ANSWER", value.tolist(), group.size())
try:
    stateless_init_torch_distributed_process_group("127.0.0.1", get_open_port(), 0, 1, backend="nccl")
except ValueError as error:
    print("REFUSED", error)
"""


def test_a_stateless_hccl_group_reduces_and_other_backends_are_refused() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert "ANSWER [5.0, 5.0, 5.0] 1" in done.stdout, done.stderr[-3000:]
    assert "REFUSED process group backend 'nccl' is not possible on NPU; allowed: 'hccl'" in done.stdout
