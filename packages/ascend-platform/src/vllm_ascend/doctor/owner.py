"""Whose ``vllm-ascend`` is installed. Another distribution of the same name is published."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution, entry_points

from vllm_ascend.doctor.report import Finding, Status

SUBJECT = "vllm-ascend"
PLATFORM_GROUP = "vllm.platform_plugins"
OUR_PLATFORM = "vllm_ascend.plugins.vllm_hooks:platform_plugin"


def our_distribution() -> list[Finding]:
    """Compare the installed distribution's entry point with ours."""
    try:
        found = distribution("vllm-ascend")
    except PackageNotFoundError:
        detail = "the package is on the path without its metadata, so vLLM finds no entry point"
        return [Finding(SUBJECT, Status.PROBLEM, "no distribution of this name", detail, "install vllm-ascend")]
    values = [it.value for it in found.entry_points if it.group == PLATFORM_GROUP]
    if OUR_PLATFORM not in values:
        return [
            Finding(
                SUBJECT,
                Status.PROBLEM,
                f"{found.version}, with the platform plugin {', '.join(values) or 'missing'}",
                f"another distribution of this name was installed over this one, whose plugin is {OUR_PLATFORM}",
                "`pip uninstall -y vllm-ascend`, then install this project's wheel by its file",
            )
        ]
    return [Finding(SUBJECT, Status.OK, f"{found.version}, this project's")]


def platform_plugins() -> list[Finding]:
    """Other out-of-tree platforms. vLLM starts none if two are active."""
    others = [it for it in entry_points(group=PLATFORM_GROUP) if it.value != OUR_PLATFORM]
    names = ", ".join(f"{it.name} of {it.dist.name if it.dist else '?'}" for it in others)
    if not others:
        return []
    detail = "if it is active on this machine, vLLM refuses to choose between two platforms; VLLM_PLUGINS=ascend does"
    return [Finding("other platforms", Status.NOTE, names, detail)]
