"""PyTorch's own operator database on the simulated NPU: every sample runs on the CPU and on the NPU, and must agree.

A result must have the CPU's structure, dtypes, shapes and values and lie on the NPU. Operators that draw random numbers
are known by the CPU generator having moved; they are compared by shape and dtype, must give the same again under the
same seed, and must leave the CPU's generator alone.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

SAMPLES = 3
TOLERANCE = {torch.bfloat16: {"rtol": 2.4e-2, "atol": 1e-5}}
"""Three units in the last place of bfloat16: one composite chooses its chunks by device. Others as torch has them."""
UNINITIALISED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")


class WrongResultError(AssertionError):
    """The NPU's result is not the CPU's."""


@dataclass(frozen=True)
class Outcome:
    """Of one operator and dtype: samples that agree, of them random, and what is wrong with the first that does not."""

    samples: int
    random: int
    refusal: str = ""
    difference: str = ""


@dataclass
class Tally:
    """Operators judged: how many agree with the CPU, on how many samples (of them random), and how many do not."""

    operators: int = 0
    agree: int = 0
    unsupported: int = 0
    samples: int = 0
    random: int = 0


def _seed() -> None:
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)


def name_of(op: Any) -> str:
    """The operator's name in the database, with its variant."""
    return f"{op.name}/{op.variant_test_name}" if op.variant_test_name else op.name


def copied(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """A copy with the tensor's strides, offset and whatever else its storage holds."""
    if tensor.layout is not torch.strided or not tensor.numel():
        return tensor.clone().to(device)
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).clone()  # as one vector
    result = storage.to(device).as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    if tensor.is_conj():
        result = result.conj()
    return torch._neg_view(result) if tensor.is_neg() else result


def for_cpu(arguments: Any) -> Any:
    """A copy of a sample's arguments."""
    return pytree.tree_map_only(torch.Tensor, lambda tensor: copied(tensor, "cpu"), arguments)


def for_npu(arguments: Any, like: Any) -> Any:
    """The arguments for the NPU: tensors on the devices that the database chose for those of `like`, its NPU sample.

    Without such a sample (the database makes fewer, or others) all tensors go to the NPU.
    """

    def leaf(item: Any, twin: Any) -> Any:
        if isinstance(item, torch.Tensor):
            return copied(item, twin.device.type if isinstance(twin, torch.Tensor) else "npu")
        if isinstance(item, torch.Generator):
            return torch.Generator("npu").manual_seed(item.initial_seed())
        return "npu" if isinstance(item, torch.device) or item == "cpu" else item

    leaves, structure = pytree.tree_flatten(arguments)
    twins = pytree.tree_leaves(like)
    if len(twins) != len(leaves):
        twins = [None] * len(leaves)
    return pytree.tree_unflatten([leaf(*pair) for pair in zip(leaves, twins)], structure)


def _check_like(where: str, got: Any, expected: Any, values: bool) -> None:
    """Raise unless the NPU's result `got` is like the CPU's."""
    if not isinstance(expected, torch.Tensor):
        if values and not (got == expected or (got != got and expected != expected)):
            raise WrongResultError(f"{where}: {got!r} instead of {expected!r}")
        return
    if not isinstance(got, torch.Tensor):
        raise WrongResultError(f"{where}: {type(got).__name__} instead of a tensor")
    if got.device.type != "npu":
        raise WrongResultError(f"{where}: the result is on {got.device}")
    for what in ("dtype", "shape", "layout"):
        if getattr(got, what) != getattr(expected, what):
            raise WrongResultError(f"{where}: {what} {getattr(got, what)} instead of {getattr(expected, what)}")
    if values:
        try:
            torch.testing.assert_close(got.cpu(), expected, equal_nan=True, **TOLERANCE.get(expected.dtype, {}))
        except AssertionError as error:
            raise WrongResultError(f"{where}: {error}") from error


def check_like(where: str, got: Any, expected: Any, values: bool = True) -> None:
    """Raise WrongResultError unless the NPU's `got` has the structure and, with `values`, the values of `expected`."""
    leaves, structure = pytree.tree_flatten(expected)
    others, found = pytree.tree_flatten(got)
    if len(leaves) != len(others):
        raise WrongResultError(f"{where}: {found} instead of {structure}: {str(got)[:200]}")
    for other, leaf in zip(others, leaves):
        _check_like(where, other, leaf, values)


def _arguments(sample: Any) -> Any:
    return (sample.input, *sample.args), sample.kwargs


def _judge_sample(op: Any, call: Callable[..., Any], arguments: Any, like: Any, where: str) -> bool:
    """Compares one sample; returns whether the operator drew random numbers."""
    args, kwargs = for_cpu(arguments)
    _seed()
    before = torch.random.get_rng_state()
    expected = call(*args, **kwargs)
    drew = not torch.equal(before, torch.random.get_rng_state())
    args, kwargs = for_npu(arguments, like)
    torch.manual_seed(7)
    got = call(*args, **kwargs)
    if not torch.equal(before, torch.random.get_rng_state()):
        raise WrongResultError(f"{where}: drew from the CPU's generator")
    check_like(where, got, expected, values=not drew and op.name not in UNINITIALISED)
    if drew:
        first = pytree.tree_map_only(torch.Tensor, torch.Tensor.cpu, got)
        args, kwargs = for_npu(arguments, like)
        torch.manual_seed(8)
        torch.npu.manual_seed(7)
        check_like(f"{where}, again under the same seed", call(*args, **kwargs), first)
    return drew


def _samples(op: Any, device: str, dtype: torch.dtype, count: int) -> list[Any]:
    # op.sample_inputs() would inspect the whole call stack for every sample, for reproduction commands.
    _seed()
    samples = op.sample_inputs_func(op, device, dtype, False)
    return [_arguments(sample) for sample in itertools.islice(samples, count)]


@contextlib.contextmanager
def _own_seeds() -> Iterator[None]:
    """Random operators of the database seed every generator themselves; here the judge does."""
    from torch.testing._internal import common_methods_invocations

    original = common_methods_invocations.wrapper_set_seed
    common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        common_methods_invocations.wrapper_set_seed = original


def judge(op: Any, dtype: torch.dtype, call: Callable[..., Any] | None = None, samples: int = SAMPLES) -> Outcome:
    """Runs up to `samples` samples of an operator on both devices, to the first that is refused or differs.

    `call` is what to run with a sample's arguments; the operator itself unless given.
    """
    compared = drawn = 0
    with _own_seeds():
        try:
            pairs = itertools.zip_longest(_samples(op, "cpu", dtype, samples), _samples(op, "npu", dtype, samples))
            for index, (arguments, like) in enumerate(pairs):
                if arguments is None:
                    break
                drawn += _judge_sample(op, call or op.op, arguments, like, f"{name_of(op)}, sample {index}")
                compared += 1
        except WrongResultError as wrong:
            return Outcome(compared, drawn, difference=str(wrong))
        except (RuntimeError, TypeError, NotImplementedError, ValueError, AssertionError) as error:
            return Outcome(compared, drawn, f"{type(error).__name__}: {error}")
    return Outcome(compared, drawn)
