"""The two callables that vLLM's own plugin groups load.

vLLM swallows errors of both groups: a platform callable that raises silently gives no platform, and a general plugin
that cannot be imported is logged and skipped. So neither does anything that can fail; problems are kept and raised in
``AscendPlatform.check_and_update_config``.
"""

from __future__ import annotations

import logging
import os
from importlib.util import find_spec

logger = logging.getLogger("vllm.vllm_ascend.plugins")


def platform_plugin() -> str | None:
    """``vllm.platform_plugins``: the path of the platform class, or None without torch_npu. Imports no device code."""
    if find_spec("torch_npu") is None:
        logger.warning(
            "vllm-ascend is installed, but torch_npu is not, so there is no Ascend platform: "
            "`pip install 'vllm-ascend[npu]'`, or `vllm-ascend doctor` for details"
        )
        return None
    # What every process of an engine has to agree on; a value that the user set is checked later.
    # torch_npu refuses a second initialisation in a forked child.
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    # vLLM 0.23 turns its V2 runner on for some models when Triton is active; this platform has the V1 runner.
    os.environ.setdefault("VLLM_USE_V2_MODEL_RUNNER", "0")
    return "vllm_ascend.platform.AscendPlatform"


def general_plugin() -> None:
    """``vllm.general_plugins``: runs in each of vLLM's processes, and in some of them more than once.

    Layers are not registered here but by the worker (:func:`vllm_ascend.plugins.commit_layers`), so that the API server
    and the model-inspection process do not import them.
    """
    from vllm.platforms import current_platform

    if current_platform.device_name != "npu":
        return
    from vllm_ascend.plugins.commit import commit_quant_methods

    commit_quant_methods()
