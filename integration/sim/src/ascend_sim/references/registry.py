# SPDX-License-Identifier: Apache-2.0
"""Collecting references and installing them in the dispatcher.

They get a key of their own, which no tensor has: the simulated device calls them with its tensors aliased as CPU
tensors, while a program that calls an operator with CPU tensors finds no kernel, as on hardware.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch

from ascend_sim.references import limits

_FAMILIES = (
    "norm",
    "activation",
    "rotary",
    "kv_cache",
    "movement",
    "mean_norm",
    "gelu_gate",
    "softmax",
    "hyper_connections",
    "attention.fused_infer",
    "attention.fused_infer_output",
    "attention.flash",
    "attention.atb",
    "attention.atb_flash",
    "attention.atb_latent",
    "attention.atb_quant",
    "attention.fusion",
    "attention.update",
    "attention.block_sparse",
    "attention.dense_indexer",
    "attention.native_sparse",
    "attention.lightning_indexer",
    "attention.sparse_flash",
    "mla.kv_norm_rope",
    "mla.qkv_norm_rope",
    "mla.prolog_operators",
    "gated_delta",
    "causal_conv",
    "tensor_format",
    "dtype_cast",
    "sampling",
    "linear",
    "quant.static",
    "quant.dynamic",
    "quant.mx",
    "quant.block",
    "quant.kronecker",
    "quant.weight",
    "quant.swiglu",
    "quant.norm",
    "matmul.grouped",
    "matmul.grouped_fused",
    "matmul.quant",
    "matmul.across",
    "matmul.transposed",
    "matmul.dequant",
    "moe.gating",
    "moe.routing",
    "moe.routing_quant",
    "moe.permute",
    "moe.finalize",
    "moe.distribute",
    "moe.combine",
    "moe.combine_norm",
)
"""Modules that declare references; importing one fills the registry."""


class Grade(StrEnum):
    """How a reference is known to be right.

    - ``golden``: tested against numbers or a CPU golden procedure that the vendor published;
    - ``documented``: written from, and tested against, a formula in the vendor's documentation;
    - ``guessed``: the vendor documents the signature only; the behaviour is inferred.
    """

    GOLDEN = "golden"
    DOCUMENTED = "documented"
    GUESSED = "guessed"


@dataclass(frozen=True, slots=True)
class Reference:
    """One CPU kernel of a torch_npu operator.

    Args:
        name: Qualified operator name with overload, for example ``npu::npu_fused_infer_attention_score.out``.
        kernel: The function, with the schema's parameter names and defaults.
        source: Where the behaviour is described (see :mod:`ascend_sim.references.sources`).
        grade: How sure that makes it.
        note: What the source leaves open and how it was decided.
    """

    name: str
    kernel: Callable[..., Any]
    source: str
    grade: Grade
    note: str = ""


_references: dict[str, Reference] = {}
_libraries: list[torch.library.Library] = []


def reference(
    *names: str, source: str, grade: Grade, note: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the decorated function as the CPU kernel of the operators ``names``.

    The function is returned unchanged; what is registered also checks the operator's row in the limits table.

    Raises:
        ValueError: If an operator already has a reference.
    """

    def declare(kernel: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if name in _references:
                raise ValueError(f"{name} has two references: {_references[name].kernel} and {kernel}")
            _references[name] = Reference(name, limits.guard(name, kernel), source, grade, note)
        return kernel

    return declare


def registered() -> dict[str, Reference]:
    """All references by qualified operator name, sorted; imports the families but registers nothing."""
    for family in _FAMILIES:
        importlib.import_module(f"ascend_sim.references.{family}")
    return dict(sorted(_references.items()))


REFERENCE_KEY = "PrivateUse3"
"""The dispatch key of references (kReference in ``csrc/dispatch/op_info.h``)."""


def _install(key: str) -> list[torch.library.Library]:
    libraries: dict[str, torch.library.Library] = {}
    for name, entry in registered().items():
        namespace, operator = name.split("::")
        library = libraries.setdefault(namespace, torch.library.Library(namespace, "IMPL"))
        library.impl(operator, entry.kernel, key)
    return list(libraries.values())


def _may_be_host(op: str, argument: str) -> bool:
    row = limits.table().get(op.split("::")[1].split(".")[0])
    return row is not None and argument in row.host


def register_all() -> list[str]:
    """Install every reference on torch_npu's schemas and return the qualified names.

    torch_npu must have been imported, since it defines the schemas. Calling it again changes nothing.

    Raises:
        RuntimeError: If torch_npu has no operator of a reference's name.
    """
    if not _libraries:
        _libraries.extend(_install(REFERENCE_KEY))
        own = torch.library.Library("ascend_sim", "IMPL")
        own.impl("may_be_host", _may_be_host, "CompositeExplicitAutograd")
        own.impl("check_limits", limits.check_call, "CompositeExplicitAutograd")
        _libraries.append(own)
    return list(registered())


@contextlib.contextmanager
def registered_on_cpu() -> Iterator[None]:
    """Let references take CPU tensors inside the block, for tests of their values without a device."""
    libraries = _install("CPU")
    try:
        yield
    finally:
        for library in libraries:
            library._destroy()
