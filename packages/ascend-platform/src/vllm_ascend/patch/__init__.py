"""The registry of every vLLM name that vllm-ascend replaces, and why.

vLLM's own extension points come first; a patch is what remains. Each is one file under ``patch/platform`` (applied in
every process) or ``patch/worker`` (applied in the process that owns the device)::

    from vllm_ascend.patch import original, patch

    @patch(
        target="vllm.v1.worker.block_table:_compute_slot_mapping_kernel",
        stage="worker",
        reason="vLLM launches a Triton kernel here; slots are computed with few device ops instead",
        versions=">=0.23,<0.24",
        digest="9f1c0c5e9f0c4a3b",          # printed by `python -m vllm_ascend.patch --digest TARGET`
    )
    def compute_slot_mapping(...): ...

A patch is applied only while its target still looks as declared; otherwise :class:`PatchError` says what changed.
``python -m vllm_ascend.patch`` prints the table and the count.
"""

from vllm_ascend.patch.apply import apply_patches, original, scope
from vllm_ascend.patch.declare import Patch, Stage, declared, patch
from vllm_ascend.patch.errors import PatchError
from vllm_ascend.patch.fingerprint import digest_of

__all__ = [
    "Patch",
    "PatchError",
    "Stage",
    "apply_patches",
    "declared",
    "digest_of",
    "original",
    "patch",
    "scope",
]
