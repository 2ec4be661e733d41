"""What a patch target looks like: found by name, told apart by the digest of its source text or by its signature."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import textwrap
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from vllm_ascend.patch.errors import PatchError

DIGEST_LENGTH = 16


@dataclass(frozen=True)
class Location:
    """Where a name lives: ``owner`` (a module or class) has the attribute ``name``."""

    owner: ModuleType | type
    name: str

    @property
    def value(self) -> Any:
        """The object itself. Static and class methods come as the descriptor, so that they can be put back."""
        if isinstance(self.owner, type):
            return inspect.getattr_static(self.owner, self.name)
        return getattr(self.owner, self.name)


def locate(target: str) -> Location:
    """Resolve ``"package.module:Name"`` or ``"package.module:Class.method"``.

    Raises:
        PatchError: the form is wrong, the module cannot be imported, or a name is missing.
    """
    module_name, separator, qualname = target.partition(":")
    if not (module_name and separator and qualname):
        raise PatchError(
            f"patch target {target!r} must have the form 'package.module:Name' or 'package.module:Class.name'"
        )
    try:
        owner: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise PatchError(f"patch target {target!r}: the module {module_name!r} cannot be imported: {error}") from error
    *parents, name = qualname.split(".")
    for parent in [*parents, name]:
        if not hasattr(owner, parent):
            raise PatchError(f"patch target {target!r} is gone: {owner.__name__!r} has no attribute {parent!r}")
        if parent is not name:
            owner = getattr(owner, parent)
    return Location(owner, name)


def _plain(value: Any) -> Any:
    """The function or class under descriptors, ``functools.wraps`` and Triton's JIT wrapper (its ``fn``)."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    if not inspect.isroutine(value) and not isinstance(value, type) and callable(getattr(value, "fn", None)):
        value = value.fn
    return inspect.unwrap(value)


def digest_of(target: str) -> str:
    """The first 16 hex digits of the SHA-256 of the target's dedented source, trailing blanks removed.

    Raises:
        PatchError: the target is missing, or is no Python function or class with a source file.
    """
    value = _plain(locate(target).value)
    try:
        source = inspect.getsource(value)
    except (OSError, TypeError) as error:
        raise PatchError(f"patch target {target!r} has no Python source to compare: {error}") from error
    lines = (line.rstrip() for line in textwrap.dedent(source).splitlines())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:DIGEST_LENGTH]


def signature_of(target: str) -> str:
    """The target's signature as Python prints it, for example ``"(self, value: int) -> None"``.

    Raises:
        PatchError: the target is missing or cannot be called.
    """
    value = _plain(locate(target).value)
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError) as error:
        raise PatchError(f"patch target {target!r} has no signature to compare: {error}") from error
