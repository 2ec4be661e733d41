"""Errors between the platform and its components."""

from __future__ import annotations


class ComponentError(RuntimeError):
    """A component is missing, broken or in conflict. Names the component, the reason and the distribution."""


class ClaimError(ValueError):
    """A component claims something that cannot be claimed: a malformed name or path, or one name twice."""


class ApiVersionError(RuntimeError):
    """A component was written for another version of :mod:`vllm_ascend.api`."""
