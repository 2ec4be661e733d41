"""``VLLM_PLUGINS`` and what it leaves out.

Our own plugins all carry the name ``ascend``, so ``VLLM_PLUGINS=ascend`` keeps them, and the groups ``vllm_ascend.*``
are not subject to it. What it does drop are general plugins of other names, for example one that a component of a
third party declares.
"""

from __future__ import annotations

import logging
import os
from importlib.metadata import entry_points

from vllm_ascend.logging import get_logger, log_once
from vllm_ascend.plugins.groups import GROUPS

logger = get_logger(__name__)


def dropped_plugins() -> dict[str, str]:
    """General plugins that ``VLLM_PLUGINS`` leaves out although their distribution has a component of ours.

    Returns:
        plugin name to distribution name.
    """
    given = os.environ.get("VLLM_PLUGINS")
    if given is None:
        return {}
    allowed = given.split(",")
    ours = {it.dist.name for group in GROUPS for it in entry_points(group=group.name) if it.dist is not None}
    general = entry_points(group="vllm.general_plugins")
    return {
        it.name: it.dist.name
        for it in general
        if it.dist is not None and it.dist.name in ours and it.name not in allowed
    }


def warn_about_dropped_plugins() -> None:
    """Say once per process which plugins of components are left out, and how to load them."""
    for name, distribution in dropped_plugins().items():
        log_once(
            logger,
            logging.WARNING,
            "VLLM_PLUGINS leaves out the general plugin %r of %s, which has a component of vllm-ascend; "
            "add it, as in VLLM_PLUGINS=ascend,%s, if the component needs it",
            name,
            distribution,
            name,
        )
