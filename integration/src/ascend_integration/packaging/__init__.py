"""Building the wheels of the workspace and installing them into fresh environments, for the release checks."""

from ascend_integration.packaging.environments import Environment
from ascend_integration.packaging.install_lines import InstallBlock, install_blocks
from ascend_integration.packaging.wheels import build_wheel, wheel_files, wheel_metadata
from ascend_integration.packaging.workspace import MEMBERS, PUBLISHED, Member

__all__ = [
    "MEMBERS",
    "PUBLISHED",
    "Environment",
    "InstallBlock",
    "Member",
    "build_wheel",
    "install_blocks",
    "wheel_files",
    "wheel_metadata",
]
