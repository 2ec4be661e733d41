"""Standalone operators for LLM inference on Ascend NPUs.

Each operator is a torch library operator in the namespace ``ascend_kernels``, with a plain torch definition beside its
Triton kernel. The environment variable ``ASCEND_KERNELS_BACKEND`` chooses what devices run; see
:mod:`ascend_kernels.backend`.
"""

from ascend_kernels.ops.activation.dynamic_quant import dynamic_quant
from ascend_kernels.ops.activation.gelu import gelu
from ascend_kernels.ops.activation.gelu_and_mul import gelu_and_mul
from ascend_kernels.ops.activation.muls_add import muls_add
from ascend_kernels.ops.activation.swiglu import swiglu
from ascend_kernels.ops.activation.swiglu_quant import swiglu_quant
from ascend_kernels.ops.activation.swiglustep import swiglustep
from ascend_kernels.ops.inputs.decode_inputs import decode_inputs
from ascend_kernels.ops.inputs.slot_mapping import slot_mapping
from ascend_kernels.ops.norm.add_rms_norm import add_rms_norm
from ascend_kernels.ops.norm.layer_norm_gated import layer_norm_gated
from ascend_kernels.ops.norm.rms_norm import rms_norm
from ascend_kernels.ops.rope.rope import rope

__all__ = [
    "add_rms_norm",
    "decode_inputs",
    "dynamic_quant",
    "gelu",
    "gelu_and_mul",
    "layer_norm_gated",
    "muls_add",
    "rms_norm",
    "rope",
    "slot_mapping",
    "swiglu",
    "swiglu_quant",
    "swiglustep",
]
