"""The one error of the patch registry."""

from __future__ import annotations


class PatchError(RuntimeError):
    """A patch cannot be declared or applied: the message names the target, what was expected and what was found."""
