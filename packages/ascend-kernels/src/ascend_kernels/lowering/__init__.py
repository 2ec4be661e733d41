"""Lowering of the kernels for Ascend on a machine without an NPU and without CANN.

``python -m ascend_kernels.lowering`` takes every launch that the operators declare through triton-ascend and the
AscendNPU IR compiler down to memory-planned HIVM, the last form before the device's own assembler, for each target,
and prints on-chip memory and global-memory traffic per operator. It needs triton-ascend and ascendnpu-ir. What it
shows: the kernel lowers and its tiles fit. Not that it runs, or is right or fast.
"""
