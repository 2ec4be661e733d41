"""vLLM's monitor of Triton compilations during inference."""

from __future__ import annotations

from importlib.util import find_spec

from vllm.logger import init_logger

from vllm_ascend.patch import original, patch

logger = init_logger(__name__)


@patch(
    target="vllm.triton_utils.jit_monitor:activate",
    stage="worker",
    reason="it hooks triton.knobs, which triton-ascend 3.2 does not have, and the worker's warm-up calls it unasked",
    versions=">=0.23,<0.24",
    digest="f44612cef09c6de0",
)
def activate() -> None:
    """Start the monitor where the installed Triton has the hooks it needs."""
    if find_spec("triton") is not None and find_spec("triton.knobs") is None:
        logger.debug("The installed Triton has no knobs module: compilations during inference are not reported")
        return
    original("vllm.triton_utils.jit_monitor:activate")()
