"""Building: what is generated, what is kept, and clear errors."""

import ctypes
import multiprocessing
import shutil
from pathlib import Path

import pytest

from ascend_sim import location
from ascend_sim.builder import BuildError, build, symbols


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds the present build as one of other sources, so that its parts are copied and not compiled."""
    present = location.build_directory(location.installed_versions())
    name = present.name.rsplit("-", 1)[0] + "-0123456789abcdef"
    shutil.copytree(present, tmp_path / name)
    monkeypatch.setenv("ASCEND_SIM_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_parts_whose_sources_did_not_change_are_kept(cache: Path) -> None:
    lines: list[str] = []
    folder = build(report=lines.append)
    assert sorted(lines[:3]) == ["operators: unchanged", "references: unchanged", "runtime: unchanged"]
    assert folder == location.build_directory(location.installed_versions())
    assert location.is_complete(folder)
    assert {location.RUNTIME, location.DISPATCH, location.REFERENCES, *location.CANN_LIBRARIES} <= {
        p.name for p in folder.iterdir()
    }
    lines.clear()
    assert build(report=lines.append) == folder
    assert lines == [f"up to date: {folder}"]


def _build(results: "multiprocessing.Queue[str]") -> None:
    results.put(str(build()))


def test_two_builds_at_once_agree(cache: Path) -> None:
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=_build, args=(results,)) for _ in range(2)]
    for process in processes:
        process.start()
    folders = {results.get(timeout=60) for _ in processes}
    for process in processes:
        process.join()
    assert folders == {str(location.build_directory(location.installed_versions()))}
    assert not list(cache.glob("building.*"))


def test_a_missing_compiler_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cache))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(BuildError, match=r"none of gcc, cc, clang is on PATH.*apt-get install g\+\+"):
        build()
    monkeypatch.setenv("CC", "mycc")
    with pytest.raises(BuildError, match="CC=mycc is not on PATH"):
        build()


def test_an_unwritable_cache_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ASCEND_SIM_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="cannot write to .*ASCEND_SIM_CACHE_DIR"):
        build()


def test_a_stub_returns_an_error_that_names_it() -> None:
    folder = location.build_directory(location.installed_versions())
    library = ctypes.CDLL(str(folder / location.RUNTIME))
    library.aclGetRecentErrMsg.restype = ctypes.c_char_p
    assert library.aclopCreateAttr() == 207000  # ACL_ERROR_RT_FEATURE_NOT_SUPPORT
    assert library.aclGetRecentErrMsg() == b"the simulated runtime does not implement aclopCreateAttr"


def test_stub_source() -> None:
    source = symbols.stub_source(["aclFoo", "_ZTVN3atb3BarE"])
    assert 'long aclFoo(void) { return sim_unimplemented("aclFoo"); }' in source
    assert "char _ZTVN3atb3BarE[256];" in source
