"""Applying patches: once per process and stage, or for the time of a ``with scope(...)`` block."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vllm_ascend.compat import installed_vllm_version
from vllm_ascend.patch.declare import Patch, Stage, declared
from vllm_ascend.patch.errors import PatchError
from vllm_ascend.patch.fingerprint import Location, digest_of, locate, signature_of

_ORIGINALS: dict[str, Any] = {}


def load_stage(stage: Stage) -> tuple[Patch, ...]:
    """Import every patch file of a stage and return its patches, scoped ones included."""
    package = importlib.import_module(f"vllm_ascend.patch.{stage}")
    for module in sorted(info.name for info in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"{package.__name__}.{module}")
    return tuple(it for it in declared() if it.stage == stage)


def check(patch: Patch) -> None:
    """Raise :class:`PatchError` unless the target looks as the patch declares."""
    version = installed_vllm_version()
    if not patch.versions.contains(version, prereleases=True):
        raise PatchError(
            f"the patch of {patch.target!r} was written for vLLM {patch.versions}, but {version} is installed; "
            f"install a vLLM of that range or a vllm-ascend made for {version}"
        )
    recognised = patch.reader or patch.target
    if patch.digest is not None and (found := digest_of(recognised)) != patch.digest:
        raise PatchError(
            f"{recognised!r} changed: its source digest is {found}, the patch replaces {patch.digest}. "
            f"Reason of the patch: {patch.reason}. Compare the new source, then correct patch and digest"
        )
    if patch.signature is not None and (found := signature_of(patch.target)) != patch.signature:
        raise PatchError(
            f"{patch.target!r} changed: its signature is {found}, the patch replaces {patch.signature}. "
            f"Reason of the patch: {patch.reason}"
        )
    value = locate(patch.target).value
    if patch.module is not None and value is not sys.modules.get(patch.module):
        raise PatchError(
            f"{patch.target!r} changed: it is {value!r}, the patch replaces the module {patch.module!r}. "
            f"Reason of the patch: {patch.reason}"
        )
    for name in patch.also:
        if locate(name).value is not value:
            raise PatchError(f"{name!r} is no longer the same object as {patch.target!r}; correct `also` of the patch")


def _bind(location: Location, value: Any) -> None:
    setattr(location.owner, location.name, value)


def apply_patches(stage: Stage) -> tuple[Patch, ...]:
    """Apply the lasting patches of a stage; a second call does nothing. All are checked before the first is applied.

    Returns:
        The lasting patches of the stage.

    Raises:
        PatchError: a target does not look as declared; no name of the stage was re-bound by this call.
    """
    lasting = tuple(it for it in load_stage(stage) if it.scope is None)
    pending = [it for it in lasting if it.target not in _ORIGINALS]
    for it in pending:
        check(it)
    for it in pending:
        value = locate(it.target).value
        for name in it.names:
            _bind(locate(name), it.replacement)
            _ORIGINALS[name] = value
    return lasting


def original(target: str) -> Any:
    """What ``target`` was before it was patched, for a replacement that calls it.

    Raises:
        PatchError: the target is not patched at the moment.
    """
    if target not in _ORIGINALS:
        raise PatchError(f"{target!r} is not patched; patched names: {sorted(_ORIGINALS) or 'none'}")
    return _ORIGINALS[target]


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Re-bind the patches declared with this scope, and put every original back on the way out.

    Scopes of one name may nest; only the outermost re-binds.

    Raises:
        PatchError: no patch has this scope, or a target does not look as declared.
    """
    members = [it for stage in ("platform", "worker") for it in load_stage(stage) if it.scope == name]
    if not members:
        known = sorted({it.scope for it in declared() if it.scope is not None})
        raise PatchError(f"no patch has the scope {name!r}; known scopes: {known or 'none'}")
    bound: list[tuple[str, Location, Any]] = []
    try:
        for it in members:
            if it.target in _ORIGINALS:
                continue
            check(it)
            value = locate(it.target).value
            for target in it.names:
                location = locate(target)
                _bind(location, it.replacement)
                bound.append((target, location, value))
                _ORIGINALS[target] = value
        yield
    finally:
        for target, location, value in reversed(bound):
            _bind(location, value)
            del _ORIGINALS[target]
