"""Standalone operators for LLM inference on Ascend NPUs.

Each operator is a torch library operator in the namespace ``ascend_kernels``, with a plain torch definition beside its
Triton kernel. The environment variable ``ASCEND_KERNELS_BACKEND`` chooses what devices run; see
:mod:`ascend_kernels.backend`.
"""

from ascend_kernels.ops.inputs.decode_inputs import decode_inputs
from ascend_kernels.ops.inputs.slot_mapping import slot_mapping

__all__ = ["decode_inputs", "slot_mapping"]
