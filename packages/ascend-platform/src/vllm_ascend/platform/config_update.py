"""``check_and_update_config``, step by step. Nothing here touches a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vllm_ascend.api import ClaimKind, ComponentError
from vllm_ascend.compat import check_vllm
from vllm_ascend.config import AscendConfig
from vllm_ascend.platform.gpu_only import refuse_unsupported, reset_gpu_options
from vllm_ascend.platform.graphs import check_graphs
from vllm_ascend.plugins import registry
from vllm_ascend.plugins.dropped import warn_about_dropped_plugins
from vllm_ascend.plugins.groups import MOE, QUANTIZATION, SPEC_DECODE

if TYPE_CHECKING:
    from vllm.config import VllmConfig

    from vllm_ascend.api import SocProfile
    from vllm_ascend.plugins import Registry

WORKER = "vllm_ascend.worker.worker.AscendWorker"


def check_and_update(vllm_config: VllmConfig) -> None:
    """Make a vLLM configuration fit this platform, or say why it cannot.

    Raises:
        UnsupportedVllmError: the installed vLLM is none that we support.
        ComponentError: a component is missing, broken or in conflict.
        ConfigError: ``--additional-config`` is wrong.
        NotImplementedError: a feature of vLLM that this version does not have.
        ValueError: a dtype, graph mode, runner or start method that is not possible.
    """
    check_vllm()
    check_process_model()
    config = AscendConfig.of(vllm_config)
    components = registry(config.soc_profile)
    components.raise_problems()
    warn_about_dropped_plugins()
    check_dtype(vllm_config, components.soc, config)
    check_components(vllm_config, components)
    refuse_unsupported(vllm_config)
    reset_gpu_options(vllm_config)
    check_block_size(vllm_config, components.soc)
    check_graphs(vllm_config, components.soc)
    if vllm_config.parallel_config.worker_cls == "auto":
        vllm_config.parallel_config.worker_cls = WORKER


def check_process_model() -> None:
    """The V1 runner, in processes that are spawned.

    Raises:
        ValueError: the environment asks for something else.
    """
    import vllm.envs as envs

    if envs.VLLM_USE_V2_MODEL_RUNNER:
        raise ValueError(
            "VLLM_USE_V2_MODEL_RUNNER=1 asks for vLLM's V2 model runner, which vllm-ascend does not have yet; "
            "unset the variable or set it to 0"
        )
    if envs.VLLM_WORKER_MULTIPROC_METHOD != "spawn":
        raise ValueError(
            f"VLLM_WORKER_MULTIPROC_METHOD={envs.VLLM_WORKER_MULTIPROC_METHOD!r} cannot be used: torch_npu refuses to "
            "initialise in a forked process; unset the variable or set it to 'spawn'"
        )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def check_dtype(vllm_config: VllmConfig, soc: SocProfile, config: AscendConfig) -> None:
    """Refuse dtypes that the SoC's attention does not take.

    Raises:
        ValueError: names the dtype, the allowed ones, and the key for float32.
    """
    if vllm_config.model_config is None:
        return
    dtype = vllm_config.model_config.dtype
    if dtype in soc.dtypes or (dtype is torch.float32 and config.allow_float32):
        return
    hint = ""
    if dtype is torch.float32:
        hint = (
            "; the vendor's fused attention takes no float32. If the device's attention does, set "
            "--additional-config '{\"allow_float32\": true}'"
        )
    raise ValueError(
        f"dtype {_name(dtype)} is not supported on {soc.name}; "
        f"allowed: {', '.join(_name(it) for it in soc.dtypes)} (--dtype){hint}"
    )


def check_components(vllm_config: VllmConfig, components: Registry) -> None:
    """Refuse a model or feature whose component is not there.

    Raises:
        ComponentError: names what was asked for and the distribution that provides it.
    """
    model, speculative = vllm_config.model_config, vllm_config.speculative_config
    if model is not None:
        check_quantization(model.quantization, components)
        if model.is_moe and not any(it.claims for it in components.installed(MOE)):
            raise ComponentError(components.missing(MOE, f"the mixture-of-experts model {model.model!r}"))
    balancer = components.claim(ClaimKind.EXPERT_BALANCER, "eplb")
    if vllm_config.parallel_config.enable_eplb and balancer is None:
        raise ComponentError(components.missing(MOE, "--enable-eplb"))
    if speculative is not None and components.claim(ClaimKind.PROPOSER, str(speculative.method)) is None:
        asked = f"the speculative method {speculative.method!r}"
        raise ComponentError(components.missing(SPEC_DECODE, asked))


def check_quantization(method: str | None, components: Registry) -> None:
    """Refuse a quantisation method that no component claims.

    Raises:
        ComponentError: names the method, the claimed ones and the distribution.
    """
    if method is None or components.claim(ClaimKind.QUANT_METHOD, method) is not None:
        return
    available = ", ".join(components.names(ClaimKind.QUANT_METHOD)) or "none"
    missing = components.missing(QUANTIZATION, f"the quantisation method {method!r}")
    raise ComponentError(f"{missing}. Methods available here: {available}")


def check_block_size(vllm_config: VllmConfig, soc: SocProfile) -> None:
    """Refuse a ``--block-size`` that is no multiple of a block the attention kernels take.

    Raises:
        ValueError: names the size and the allowed multiples.
    """
    cache = vllm_config.cache_config
    if not cache.user_specified_block_size or any(cache.block_size % it == 0 for it in soc.kernel_block_sizes):
        return
    sizes = " or ".join(str(it) for it in soc.kernel_block_sizes)
    raise ValueError(
        f"--block-size {cache.block_size} is not possible on {soc.name}: its attention kernels read blocks of {sizes} "
        f"tokens; use a multiple of {sizes}, or leave the option out"
    )
