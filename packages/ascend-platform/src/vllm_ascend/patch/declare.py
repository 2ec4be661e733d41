"""Declaring a patch: target, reason, versions, and what the replaced thing must look like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from vllm_ascend.patch.errors import PatchError

Stage = Literal["platform", "worker"]
Replacement = TypeVar("Replacement")

_DECLARED: dict[str, Patch] = {}


@dataclass(frozen=True)
class Patch:
    """One replaced name.

    Attributes:
        target: ``"package.module:Name"`` or ``"package.module:Class.method"``.
        also: further places that hold the same object because they imported it by value; each counts as a name.
        stage: ``platform`` (every process) or ``worker`` (the process that owns the device).
        reason: why no extension point serves.
        versions: the vLLM releases it was written for, as a specifier set.
        digest: :func:`vllm_ascend.patch.digest_of` the target, or of ``reader`` if there is one, or None.
        reader: for a global that is neither function, class nor module: the function that reads it, or None.
        signature: ``str(inspect.signature(target))``, or None.
        module: for a module's global that is itself a module: the name of the module it must be, or None.
        scope: None for a lasting patch; else the name of the ``with scope(...)`` block that it lives in.
        replacement: the object that takes the target's place.
    """

    target: str
    also: tuple[str, ...]
    stage: Stage
    reason: str
    versions: SpecifierSet
    digest: str | None
    reader: str | None
    signature: str | None
    module: str | None
    scope: str | None
    replacement: Any

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that is re-bound."""
        return (self.target, *self.also)


def patch(
    *,
    target: str,
    stage: Stage,
    reason: str,
    versions: str,
    digest: str | None = None,
    reader: str | None = None,
    signature: str | None = None,
    module: str | None = None,
    also: tuple[str, ...] = (),
    scope: str | None = None,
) -> Callable[[Replacement], Replacement]:
    """Declare the decorated object as the replacement of ``target``; nothing is re-bound until it is applied.

    It can be called on an existing object as well: ``patch(target=…, scope="capture", …)(torch.npu.Stream)``.

    Raises:
        PatchError: no reason, nothing to recognise the target by, a name patched twice, or a lasting patch of torch.
    """
    if not reason.strip():
        raise PatchError(f"the patch of {target!r} gives no reason")
    try:
        specifier = SpecifierSet(versions)
    except InvalidSpecifier as error:
        raise PatchError(f"the patch of {target!r} has invalid versions {versions!r}: {error}") from error
    of_torch = target.partition(":")[0].split(".")[0] in ("torch", "torch_npu")
    if of_torch and scope is None:
        raise PatchError(f"the patch of {target!r} must name a scope: nothing of torch is re-bound for good")
    if scope is None and digest is None and signature is None and module is None:
        raise PatchError(f"the patch of {target!r} needs a digest or a signature of what it replaces")

    def declare(replacement: Replacement) -> Replacement:
        new = Patch(
            target,
            also,
            stage,
            reason,
            specifier,
            digest,
            reader,
            signature,
            module,
            scope,
            replacement,
        )
        for name in new.names:
            known = _DECLARED.get(name)
            if known is not None and not _same_place(known.replacement, replacement):
                raise PatchError(f"{name!r} is patched twice: for {known.reason!r} and for {reason!r}")
            _DECLARED[name] = new
        return replacement

    return declare


def _same_place(first: Any, second: Any) -> bool:
    """Whether a module was only imported again (its function is a new object of the same name)."""
    if first is second:
        return True
    places = [(getattr(it, "__module__", None), getattr(it, "__qualname__", None)) for it in (first, second)]
    return places[0] == places[1] and places[0] != (None, None)


def declared() -> tuple[Patch, ...]:
    """Every declared patch once, in order of declaration. Stages that were not loaded yet are not in it."""
    return tuple(dict.fromkeys(_DECLARED.values()))
