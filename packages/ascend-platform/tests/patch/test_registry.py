"""Patches are applied to what they were written for, and to nothing else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import vllm_ascend.patch.apply as apply_module
import vllm_ascend.patch.declare as declare_module
from vllm_ascend.patch import PatchError, apply_patches, digest_of, original, patch, scope

VERSIONS = ">=0.23,<0.24"
SOURCE = "def greet(name):\n    return 'hello ' + name\n\n\nclass Thing:\n    def size(self):\n        return 1\n"


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module that is patched, with an empty registry of patches."""
    (tmp_path / "patched_here.py").write_text(SOURCE)
    (tmp_path / "imports_by_value.py").write_text("from patched_here import greet\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(declare_module, "_DECLARED", {})
    monkeypatch.setattr(apply_module, "_ORIGINALS", {})
    # The files of the stages are not read: what a test declares is all there is.
    declared = declare_module.declared
    monkeypatch.setattr(apply_module, "load_stage", lambda stage: tuple(it for it in declared() if it.stage == stage))
    import patched_here

    yield patched_here
    sys.modules.pop("patched_here", None)
    sys.modules.pop("imports_by_value", None)


def shout(name: str) -> str:
    """The replacement: it calls what it replaces."""
    return original("patched_here:greet")(name).upper()


def test_a_patch_is_applied_once_and_reaches_its_original(target: ModuleType) -> None:
    digest = digest_of("patched_here:greet")
    patch(target="patched_here:greet", stage="platform", reason="louder", versions=VERSIONS, digest=digest)(shout)
    assert target.greet("you") == "hello you"  # declaring binds nothing
    apply_patches("platform")
    apply_patches("platform")
    assert target.greet("you") == "HELLO YOU"


def test_a_method_and_a_name_imported_by_value_are_replaced_too(target: ModuleType) -> None:
    import imports_by_value

    digest = digest_of("patched_here:greet")
    patch(
        target="patched_here:greet",
        also=("imports_by_value:greet",),
        stage="platform",
        reason="louder",
        versions=VERSIONS,
        digest=digest,
    )(shout)
    signature = "(self)"
    patch(target="patched_here:Thing.size", stage="platform", reason="more", versions=VERSIONS, signature=signature)(
        lambda self: 2
    )
    apply_patches("platform")
    assert imports_by_value.greet("you") == "HELLO YOU"
    assert target.Thing().size() == 2


def test_a_global_is_recognised_by_the_function_that_reads_it(target: ModuleType) -> None:
    target.NAME = "you"
    arguments = {"target": "patched_here:NAME", "stage": "platform", "reason": "other", "versions": VERSIONS}
    patch(**arguments, digest="0123456789abcdef", reader="patched_here:greet")("me")
    with pytest.raises(PatchError, match="'patched_here:greet' changed: its source digest is"):
        apply_patches("platform")
    assert target.NAME == "you"
    declare_module._DECLARED.clear()
    patch(**arguments, digest=digest_of("patched_here:greet"), reader="patched_here:greet")("me")
    apply_patches("platform")
    assert target.NAME == "me"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"digest": "0123456789abcdef"}, "changed: its source digest is .*, the patch replaces 0123456789abcdef"),
        ({"signature": "(first, last)"}, r"changed: its signature is \(name\), the patch replaces \(first, last\)"),
        ({"signature": "(name)", "versions": "<0.23"}, r"was written for vLLM <0\.23, but 0\.23\.0 is installed"),
        ({"signature": "(name)", "target": "patched_here:gone"}, "'patched_here' has no attribute 'gone'"),
        ({"signature": "(name)", "target": "not_there:x"}, "'not_there' cannot be imported"),
        ({"signature": "(name)", "target": "patched_here"}, "must have the form 'package.module:Name'"),
        ({"signature": "(name)", "also": ("patched_here:Thing",)}, "is no longer the same object"),
    ],
    ids=["source", "signature", "vllm-release", "name-gone", "module-gone", "malformed", "copies"],
)
def test_a_target_that_is_not_as_declared_stops_the_stage(
    target: ModuleType, change: dict[str, object], says: str
) -> None:
    size = patch(
        target="patched_here:Thing.size", stage="platform", reason="more", versions=VERSIONS, signature="(self)"
    )
    size(lambda self: 2)
    arguments = {"target": "patched_here:greet", "versions": VERSIONS, **change}
    patch(stage="platform", reason="louder", **arguments)(shout)
    with pytest.raises(PatchError, match=says):
        apply_patches("platform")
    assert target.greet("you") == "hello you"
    assert target.Thing().size() == 1  # not half of a stage either


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"reason": " ", "digest": "x"}, "gives no reason"),
        ({"reason": "r"}, "needs a digest or a signature"),
        ({"reason": "r", "digest": "x", "versions": "new"}, "invalid versions 'new'"),
        ({"reason": "r", "digest": "x", "target": "torch.cuda:Stream"}, "nothing of torch is re-bound for good"),
    ],
    ids=["no-reason", "no-fingerprint", "no-versions", "torch"],
)
def test_an_incomplete_declaration_is_refused(arguments: dict[str, str], says: str) -> None:
    with pytest.raises(PatchError, match=says):
        patch(**{"target": "a:b", "stage": "worker", "versions": VERSIONS, **arguments})


@pytest.mark.usefixtures("target")
def test_two_patches_of_one_name_are_refused() -> None:
    declare = patch(target="patched_here:greet", stage="worker", reason="one", versions=VERSIONS, signature="(name)")
    declare(shout)
    with pytest.raises(PatchError, match="'patched_here:greet' is patched twice"):
        declare(lambda name: name)


def test_a_scope_re_binds_and_puts_back_even_after_an_error(target: ModuleType) -> None:
    before = target.greet
    patch(target="patched_here:greet", stage="worker", reason="r", versions=VERSIONS, scope="loud")(shout)

    def fail_inside() -> None:
        with scope("loud"):
            with scope("loud"):
                assert target.greet("you") == "HELLO YOU"
            assert target.greet("you") == "HELLO YOU"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_inside()
    assert target.greet is before
    apply_patches("worker")
    assert target.greet is before  # a scoped patch is never a lasting one


@pytest.mark.usefixtures("target")
def test_an_unknown_scope_is_refused() -> None:
    with pytest.raises(PatchError, match="no patch has the scope 'quiet'"), scope("quiet"):
        pass


def test_the_digest_ignores_indentation_and_trailing_blanks_only(target: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "again.py").write_text("if True:\n    def greet(name):   \n        return 'hello ' + name\n")
    (tmp_path / "other.py").write_text("def greet(name):\n    return 'hallo ' + name\n")
    assert digest_of("again:greet") == digest_of("patched_here:greet")
    assert digest_of("other:greet") != digest_of("patched_here:greet")
