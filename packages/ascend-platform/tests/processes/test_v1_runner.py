"""vLLM's V1 runner is chosen whatever Triton says."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from vllm.engine.arg_utils import EngineArgs
import vllm.config.vllm as module
import torch

module.HAS_TRITON = {has_triton}
config = EngineArgs(model={model!r}, skip_tokenizer_init=True).create_engine_config()
assert config._is_default_v2_model_runner_model()
print("ANSWER", config.use_v2_model_runner, torch.npu.is_initialized())
"""


@pytest.mark.parametrize("has_triton", [True, False])
def test_a_dense_llama_gets_the_v1_runner(tiny_llama: str, has_triton: bool) -> None:
    script = SCRIPT.format(has_triton=has_triton, model=tiny_llama)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "ANSWER False False" in done.stdout, done.stderr[-3000:]
