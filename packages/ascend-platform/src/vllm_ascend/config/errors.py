"""Errors in ``--additional-config``."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from pydantic import ValidationError


class ConfigError(ValueError):
    """A key or value of the configuration is wrong. Says what was given, what is allowed and what to do."""


def unknown_key(key: str, known: Iterable[str], where: str) -> str:
    """The message for an unknown key, with the nearest known one."""
    known = sorted(known)
    nearest = get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    return f"{where}: unknown key {key!r}{hint} Known keys: {', '.join(known) or 'none'}"


def explain(error: ValidationError, known: Iterable[str], where: str) -> str:
    """A pydantic error in our words: every wrong key with its place, its value and what is allowed."""
    known = tuple(known)
    messages = []
    for detail in error.errors(include_url=False):
        path = ".".join(str(it) for it in detail["loc"])
        if detail["type"] == "extra_forbidden" and len(detail["loc"]) == 1:
            messages.append(unknown_key(path, known, where))
        elif detail["type"] == "extra_forbidden":
            messages.append(f"{where}: unknown key {path!r}")
        else:
            given = detail["input"]
            messages.append(
                f"{where}: {path or 'the value'} is {given!r}, of type {type(given).__name__}; {detail['msg']}"
            )
    return "\n".join(messages)
