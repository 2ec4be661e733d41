"""uv.lock and the hash lists: no registry host, every hash, and the set that the lock must agree with."""

import re
import runpy
import subprocess
import tomllib

import pytest

from ascend_integration.packaging.workspace import ROOT

LOCK = ROOT / "uv.lock"
neutral = runpy.run_path(str(ROOT / "tools" / "lock.py"))["neutral"]

# Split, so that this file does not name them either.
HOSTS = re.compile("|".join(["py" + r"pi\.org", "python" + r"hosted\.org", "py" + r"torch\.org/whl", "/simp" + "le/"]))


def test_committed_lock_is_neutral() -> None:
    assert LOCK.read_text() == neutral(LOCK.read_text())


@pytest.mark.parametrize("scheme", ["https", "http", "file"])
def test_neutral_form_keeps_everything_but_hosts(scheme: str) -> None:
    written = (
        f'source = {{ registry = "{scheme}://mirror.example/root/index" }}\n'
        f'sdist = {{ url = "{scheme}://files.example/a/b/torch-1.0.tar.gz", hash = "sha256:ab", size = 3 }}\n'
        f'    {{ url = "{scheme}://files.example/c/torch-1.0-py3-none-any.whl", hash = "sha256:cd" }},\n'
    )
    assert neutral(written) == (
        'source = { registry = "https://index.invalid/simple" }\n'
        'sdist = { url = "https://index.invalid/torch-1.0.tar.gz", hash = "sha256:ab", size = 3 }\n'
        '    { url = "https://index.invalid/torch-1.0-py3-none-any.whl", hash = "sha256:cd" },\n'
    )


def test_every_locked_file_has_a_hash() -> None:
    urls = re.findall(r'\{ url = "[^"]+"(.*)', LOCK.read_text())
    assert len(urls) > 500  # the pattern still finds them
    assert [rest for rest in urls if not re.match(r', hash = "sha256:[0-9a-f]{64}"', rest)] == []


def test_lock_leaves_torch_and_triton_out() -> None:
    names = {package["name"] for package in tomllib.loads(LOCK.read_text())["package"]}
    assert names.isdisjoint({"torch", "triton", "llm", "llama-cpp-python"})
    assert {"torch-npu", "triton-ascend", "vllm", "xgrammar"} <= names


def test_no_tracked_file_names_a_registry_host() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    found = []
    for name in listed.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file():
            text = path.read_bytes().decode("utf-8", errors="replace")
            # The neutral lock has the path /simple on the reserved host.
            found += [f"{name}: {hit}" for hit in HOSTS.findall(text.replace("index.invalid/simple", ""))]
    assert found == []


def test_uv_of_the_bootstrap_list_is_the_required_one() -> None:
    pinned = re.findall(r"^uv==(\S+)", (ROOT / "locks" / "bootstrap.txt").read_text(), re.MULTILINE)
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["required-version"]
    assert [f"=={version}" for version in pinned] == [required]
