"""The two callables that vLLM's own plugin groups load.

vLLM swallows exceptions of both groups in different ways (a platform callable that raises silently gives no platform; a
general plugin that fails to import is logged and skipped), so neither does anything that can fail here: problems are
stored and raised in ``AscendPlatform.check_and_update_config``.
"""

from __future__ import annotations

import os


def platform_plugin() -> str | None:
    """``vllm.platform_plugins``: the dotted path of the platform class. Never raises, imports no device code."""
    # torch_npu refuses a second initialisation in a forked child.
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    # vLLM 0.23 turns its V2 runner on for some models when Triton is active; this platform has the V1 runner.
    os.environ.setdefault("VLLM_USE_V2_MODEL_RUNNER", "0")
    return "vllm_ascend.platform.AscendPlatform"


def general_plugin() -> None:
    """``vllm.general_plugins``: runs in each of vLLM's processes, more than once in some of them."""
    from vllm_ascend.ops import register_ops

    register_ops()
