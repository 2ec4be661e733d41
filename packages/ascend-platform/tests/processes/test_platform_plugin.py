"""The platform callable never raises, whatever is missing."""

from __future__ import annotations

import subprocess
import sys

HIDE = """
import importlib.abc, sys

class Hide(importlib.abc.MetaPathFinder):
    hidden = {hidden!r}
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.hidden:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
"""


def run(hidden: set[str], body: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process in which some top-level modules cannot be imported."""
    script = HIDE.format(hidden=hidden) + body
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


BODY = """
import os
from vllm_ascend.plugins.vllm_hooks import platform_plugin
path = platform_plugin()
print("ANSWER", path, os.environ.get("VLLM_WORKER_MULTIPROC_METHOD"), "torch" in sys.modules)
"""


def test_with_torch_npu_it_names_the_platform_and_imports_no_torch() -> None:
    done = run(set(), BODY)
    assert "ANSWER vllm_ascend.platform.AscendPlatform spawn False" in done.stdout, done.stderr


def test_without_torch_npu_there_is_no_platform_and_a_reason() -> None:
    # find_spec does not raise in a real environment without the package, so it is asked for a name that is not there.
    body = BODY.replace(
        "path = ",
        "import importlib.util as u, vllm_ascend.plugins.vllm_hooks as h\n"
        "h.find_spec = lambda name: u.find_spec('no_' + name)\npath = ",
    )
    done = run(set(), body)
    assert "ANSWER None None False" in done.stdout, done.stderr
    assert "pip install 'vllm-ascend[npu]'" in done.stderr
