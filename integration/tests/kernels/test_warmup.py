"""What is compiled before serving: every specialisation that the operators' calls launch, each once."""

import subprocess
import sys

import pytest
import torch

from ascend_kernels.calls import Call, launches_of, meta
from ascend_kernels.library import OPERATORS
from ascend_kernels.lowering.signature import signature_of
from ascend_kernels.target import ASCEND_910B1, Target, cuda_target
from ascend_kernels.warmup import specialisations

NAMES = ("rms_norm", "paged_decode_attention", "gated_delta_rule", "slot_mapping")


@pytest.mark.parametrize("target", [ASCEND_910B1, cuda_target(132)], ids=["ascend", "cuda"])
def test_every_launch_of_the_declared_calls_is_among_them_once(target: Target) -> None:
    found = [signature_of(one.launch).key(one.launch.kernel) for one in specialisations(target, NAMES)]
    launches = [
        launch
        for name in NAMES
        for call in OPERATORS[name].calls()
        for launch in launches_of(OPERATORS[name].triton(), call, target)
    ]
    assert set(found) == {signature_of(launch).key(launch.kernel) for launch in launches}
    # Triton tells sizes that are multiples of 16 from others besides, which the NPU's compiler makes no use of.
    assert len(set(found)) <= len(found) < len(launches)


def test_a_logged_call_adds_what_no_declared_one_launches() -> None:
    declared = list(specialisations(ASCEND_910B1, ["rms_norm"]))
    call = Call("logged-1", (meta(4, 1000, dtype=torch.float16), meta(1000, dtype=torch.float16), 1e-6, False))
    added = list(specialisations(ASCEND_910B1, ["rms_norm"], [("rms_norm", call), ("rms_norm", call)]))
    assert [(one.operator, one.call) for one in added[len(declared) :]] == [("rms_norm", "logged-1")]


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(ValueError, match="no operator is called nothing; there are add_rms_norm"):
        list(specialisations(ASCEND_910B1, ["rms_norm", "nothing"]))


def test_the_command_lists_what_it_would_compile() -> None:
    command = [sys.executable, "-m", "ascend_kernels.warmup", "swiglu", "--list", "--device", "cpu"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "no launch plan for tensors on a 'cpu' device" in done.stderr
    program = (
        "import sys; from ascend_kernels.target import ASCEND_910B1, use_target; from ascend_kernels import warmup\n"
        "with use_target(ASCEND_910B1): sys.argv[1:] = ['swiglu', '--list', '--device', 'cpu']; warmup.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    # triton-ascend prints a warning of its own.
    lines = [line for line in done.stdout.splitlines() if not line.startswith("Warning")]
    assert lines == [
        f"swiglu {one.call}: {one.launch.kernel.__name__}" for one in specialisations(ASCEND_910B1, ["swiglu"])
    ]
    assert lines
