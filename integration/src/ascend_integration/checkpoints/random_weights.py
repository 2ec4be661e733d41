"""Random weights of tiny models: none is left at a value with which forgetting it would not show."""

import torch
from torch import nn


def unsettle(model: nn.Module) -> None:
    """Add noise to the norms and biases of `model`, which transformers starts at their neutral value.

    The correction bias of a router of experts is a buffer.
    """
    for name, parameter in model.named_parameters():
        if "norm" in name.lower() or name.endswith("bias"):
            parameter.data += 0.2 * torch.randn_like(parameter)
    for name, buffer in model.named_buffers():
        if name.endswith("correction_bias"):
            buffer += 0.2 * torch.randn_like(buffer)
