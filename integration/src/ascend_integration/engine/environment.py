"""The environment of a process that runs test engines; to be set before torch or vLLM is imported."""

import os
import sys

FIXED_VARIABLES = {
    # Engines run inside the test process; tests of processes start their own.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # The vendor's fused attention takes no float32; token equality with transformers needs it.
    "ASCEND_SIM_ORACLE_FP32": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
# Two test workers share two cores; more threads than cores only take turns.
_DEFAULTS = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def prepare_test_environment() -> None:
    """Set the variables; `RuntimeError` when torch is already imported and would not see them."""
    if "torch" in sys.modules:
        raise RuntimeError("torch was imported before the test environment was set; import it in the tests instead")
    os.environ.update(FIXED_VARIABLES)
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
