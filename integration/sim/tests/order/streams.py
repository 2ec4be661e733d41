"""Streams that are surely different ones: `torch.npu.Stream()` hands out those of a pool in turn, 32 and then again."""

import torch

SIDE, CAPTURE, UPDATES = torch.npu.Stream(), torch.npu.Stream(), torch.npu.Stream()
