"""Cached folders are absent or whole."""

import pytest

from ascend_integration.checkpoints.cache import file_digest, make_once


def test_filled_once(tmp_path):
    calls = []

    def fill(folder):
        calls.append(folder)
        (folder / "content").write_text("whole")

    for _ in range(2):
        assert make_once(tmp_path / "a" / "b", fill) == tmp_path / "a" / "b"
    assert len(calls) == 1
    assert (tmp_path / "a" / "b" / "content").read_text() == "whole"


def test_an_interrupted_fill_leaves_nothing(tmp_path):
    def fill(folder):
        (folder / "half").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_once(tmp_path / "model", fill)
    assert list(tmp_path.iterdir()) == []


def test_the_first_of_two_processes_wins(tmp_path):
    def fill_while_another_finishes(folder):
        (folder / "content").write_text("second")
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "content").write_text("first")

    make_once(tmp_path / "model", fill_while_another_finishes)
    assert (tmp_path / "model" / "content").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_an_unwritable_place_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        make_once(tmp_path / "file" / "model", lambda folder: None)


def test_digest_of_a_known_text(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1.
    assert file_digest(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
