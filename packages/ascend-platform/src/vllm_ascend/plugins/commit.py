"""Registering the collected claims with vLLM, each name once per process."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vllm_ascend.api import Claim, ClaimError, ClaimKind, ComponentError
from vllm_ascend.plugins.collect import registry

if TYPE_CHECKING:
    from vllm.config import VllmConfig


def load_claim(claim: Claim) -> Any:
    """Import what a claim points at.

    Raises:
        ComponentError: the module cannot be imported or has no such attribute.
    """
    module, _, name = claim.path.partition(":")
    try:
        loaded = importlib.import_module(module)
        return getattr(loaded, name) if name else loaded
    except (ImportError, AttributeError) as error:
        raise ComponentError(
            f"{claim.distribution} claims the {claim.kind} {claim.name!r}, but {claim.path} cannot be loaded: {error}. "
            f"Repair or uninstall {claim.distribution}"
        ) from error


def commit_quant_methods() -> None:
    """Register every claimed quantisation method with vLLM. Must run before a model's configuration is read.

    Raises:
        ComponentError: a claim cannot be loaded.
        ClaimError: a claim is no ``QuantizationConfig``.
    """
    claims = [it for it in registry().claims.values() if it.kind is ClaimKind.QUANT_METHOD]
    if not claims:
        return
    from vllm.model_executor.layers import quantization
    from vllm.model_executor.layers.quantization.base_config import QuantizationConfig

    for claim in claims:
        config = load_claim(claim)
        if not (isinstance(config, type) and issubclass(config, QuantizationConfig)):
            raise ClaimError(
                f"{claim.distribution} claims the quant_method {claim.name!r} with {claim.path}, "
                "which is no QuantizationConfig"
            )
        known = claim.name in quantization.QUANTIZATION_METHODS
        if not known or quantization.get_quantization_config(claim.name) is not config:
            quantization.register_quantization_config(claim.name)(config)


def commit_layers(vllm_config: VllmConfig) -> None:
    """Register vllm-ascend's own layers and every claimed one in vLLM's out-of-tree slots.

    For the process that builds the model, before it does; a second call does nothing.

    Raises:
        ComponentError: components do not fit together, a claim cannot be loaded, or a slot is taken by somebody else.
        ClaimError: a claim is no ``CustomOp`` or ``PluggableLayer``.
    """
    from vllm.model_executor.custom_op import CustomOp, PluggableLayer, op_registry_oot

    from vllm_ascend.config import AscendConfig
    from vllm_ascend.ops import register_ops

    components = registry(AscendConfig.of(vllm_config).soc_profile)
    components.raise_problems()
    for claim in components.claims.values():
        if claim.kind is not ClaimKind.LAYER:
            continue
        layer = load_claim(claim)
        if not (isinstance(layer, type) and issubclass(layer, CustomOp | PluggableLayer)):
            raise ClaimError(
                f"{claim.distribution} claims the layer {claim.name!r} with {claim.path}, "
                "which is neither a CustomOp nor a PluggableLayer"
            )
        taken = op_registry_oot.get(claim.name)
        if taken is layer:
            continue
        if taken is not None:
            raise ComponentError(
                f"the layer {claim.name!r} is claimed by {claim.distribution} ({claim.path}), but its slot in vLLM is "
                f"taken by {taken.__module__}:{taken.__qualname__}; uninstall one of the two"
            )
        base: Any = CustomOp if issubclass(layer, CustomOp) else PluggableLayer
        base.register_oot(name=claim.name)(layer)
    register_ops()
