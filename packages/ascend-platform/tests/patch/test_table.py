"""`python -m vllm_ascend.patch`: every patch of this release fits the installed vLLM, and there are few of them."""

from __future__ import annotations

import re
import subprocess
import sys


def test_every_patch_fits_the_installed_vllm_and_they_are_at_most_twenty() -> None:
    done = subprocess.run([sys.executable, "-m", "vllm_ascend.patch"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = re.search(r"(\d+) patched names \(limit 20\)", done.stdout)
    assert counted is not None
    assert int(counted[1]) <= 20
