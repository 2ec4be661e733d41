# SPDX-License-Identifier: Apache-2.0
"""CPU kernels for torch_npu's fused operators, registered on the schemas torch_npu itself defines.

The simulated device aliases NPU arguments as CPU tensors, so a reference only ever sees CPU tensors. Called with CPU
tensors, an operator has no kernel, as on hardware.
Arguments a schema marks as written, and ``out`` arguments, are written in place.

Each reference names the vendor's document or test it was written from and how sure that makes it
(:class:`~ascend_sim.references.registry.Grade`).
"""

from __future__ import annotations

from ascend_sim.references.registry import Grade, Reference, reference, register_all, registered, registered_on_cpu

__all__ = ["Grade", "Reference", "reference", "register_all", "registered", "registered_on_cpu"]
