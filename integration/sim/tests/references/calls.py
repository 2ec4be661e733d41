# SPDX-License-Identifier: Apache-2.0
"""Calling an operator on the CPU key and checking on the way what holds for every operator.

- Its results have the shapes and dtypes that torch_npu's Meta kernel promises, if it has one.
- The first call of an operator is repeated on the simulated device, and in a captured graph that is replayed (if graphs
  hold all calls of the operator); both give the same results and leave the same in the arguments.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from ascend_sim.references import limits

_META = set(torch._C._dispatch_get_registrations_for_dispatch_key("Meta"))
_on_device: set[str] = set()


def call(name: str, *args: Any, device: bool = True, **kwargs: Any) -> Any:
    """Result of operator ``name`` (for example ``npu::npu_rms_norm`` or ``atb::npu_ring_mla.out``) on CPU tensors.

    Args:
        device: Whether the first call of the operator is repeated on the device.
    """
    operator = _operator(name)
    given = (args, kwargs)
    fresh, again = (pytree.tree_map_only(Tensor, torch.clone, given) for _ in range(2))
    result = operator(*args, **kwargs)
    if name in _META:
        promised = operator(*_to(fresh[0], "meta"), **_to(fresh[1], "meta"))
        assert _described(result) == _described(promised)
    if device and name not in _on_device:
        _on_device.add(name)
        _check_device(operator, fresh, (result, given))
        if _capturable(operator):
            _check_capture(operator, again, (result, given))
    return result


def _operator(name: str) -> Any:
    qualified, _, overload = name.partition(".")
    namespace, operator = qualified.split("::")
    return getattr(getattr(getattr(torch.ops, namespace), operator), overload or "default")


def _capturable(operator: Any) -> bool:
    """Whether the table of limits lets graphs hold the operator, whatever its arguments."""
    row = limits.table().get(operator._schema.name.split("::")[1])
    return row is None or (row.capture and not any(rule.captured for rule in row.rules))


def _to(tree: Any, device: str) -> Any:
    return pytree.tree_map_only(Tensor, lambda tensor: tensor.to(device), tree)


def _moved(operator: Any, given: Any) -> Any:
    """Arguments on the device, but for those that the table of limits has on the host."""
    args, kwargs = given
    name = operator._schema.name.split("::")[1]
    host = limits.table()[name].host if name in limits.table() else ()
    names = [argument.name for argument in operator._schema.arguments]
    args = [value if names[i] in host else _to(value, "npu") for i, value in enumerate(args)]
    return args, {name: value if name in host else _to(value, "npu") for name, value in kwargs.items()}


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _described(result: Any) -> list[tuple[tuple[int, ...], torch.dtype]]:
    return [(tuple(t.shape), t.dtype) for t in _tensors(result)]


def _check_device(operator: Any, given: Any, expected: Any) -> None:
    args, kwargs = _moved(operator, given)
    result = operator(*args, **kwargs)
    assert all(tensor.device.type == "npu" for tensor in _tensors(result))
    _check_same((result, (args, kwargs)), expected)


def _check_capture(operator: Any, given: Any, expected: Any) -> None:
    args, kwargs = _moved(operator, given)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        result = operator(*args, **kwargs)
    graph.replay()
    torch.npu.synchronize()
    _check_same((result, (args, kwargs)), expected)


def _check_same(actual: Any, expected: Any) -> None:
    pairs = zip(_tensors(actual), _tensors(expected), strict=True)
    for found, wanted in pairs:
        torch.testing.assert_close(found.cpu(), wanted, rtol=0, atol=0, equal_nan=True)
