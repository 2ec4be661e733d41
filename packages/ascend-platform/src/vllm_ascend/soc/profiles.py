"""A2, A3 and A5 as data. 310P comes from the distribution ascend-310p through an entry point.

Chip names and numbers are those of torch_npu's ``SocVersion`` enumeration; 192 KiB of unified buffer per vector core
is what the Ascend Triton compiler allots on A2 and A3 ("1572864 bits available").
"""

from __future__ import annotations

import torch

from vllm_ascend.api import SocProfile

KIB = 1024
_HALF_TYPES = (torch.bfloat16, torch.float16)

A2 = SocProfile(
    name="A2",
    chip_names=r"Ascend910B([1-4](C|-1)?)?",
    soc_versions=((220, 225),),
    dtypes=_HALF_TYPES,
    kernel_block_sizes=(128,),
    unified_buffer_bytes=192 * KIB,
)
A3 = SocProfile(
    name="A3",
    chip_names=r"Ascend910_93\d\d|Ascend910C",
    soc_versions=((250, 255),),
    dtypes=_HALF_TYPES,
    kernel_block_sizes=(128,),
    unified_buffer_bytes=192 * KIB,
)
A5 = SocProfile(
    name="A5",
    chip_names=r"Ascend950.*",
    soc_versions=((260, 260),),
    dtypes=_HALF_TYPES,
    kernel_block_sizes=(128,),
    # Not measured: what is known to fit A2 and A3 is taken until someone has planned a kernel for A5.
    unified_buffer_bytes=192 * KIB,
)

BUILT_IN: dict[str, SocProfile] = {it.name: it for it in (A2, A3, A5)}
DEFAULT_PROFILE = A2.name
"""Assumed where no device may be touched yet and nothing is configured; a worker checks it against its chip."""
