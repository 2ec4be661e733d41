"""Version, changelog, news fragments and tags of each distribution agree."""

import re
import subprocess
import sys

import pytest
from packaging.version import Version

from ascend_integration.packaging import PUBLISHED, Member
from ascend_integration.packaging.workspace import ROOT

BY_NAME = pytest.mark.parametrize("member", PUBLISHED, ids=lambda member: member.name)
MARK = "<!-- towncrier release notes start -->"


def released(member: Member) -> list[Version]:
    """The versions that the changelog describes, as written from top to bottom."""
    text = (member.folder / "CHANGELOG.md").read_text()
    head, mark, body = text.partition(MARK)
    assert mark, f"{member.name}: CHANGELOG.md lost the line that towncrier writes below: {MARK}"
    assert "## " not in head
    return [Version(found) for found in re.findall(r"^## (\S+) \(\d{4}-\d{2}-\d{2}\)$", body, re.MULTILINE)]


def fragments(member: Member) -> list[str]:
    return sorted(path.name for path in (member.folder / "news").glob("*.md"))


@BY_NAME
def test_changelog_is_newest_first_and_not_ahead_of_the_version(member: Member) -> None:
    versions = released(member)
    assert versions == sorted(versions, reverse=True)
    assert all(version <= Version(member.version) for version in versions)


@BY_NAME
def test_an_unreleased_version_has_news_and_a_released_one_has_none(member: Member) -> None:
    if Version(member.version) in released(member):
        assert fragments(member) == [], (
            "news after a release belongs to a version that pyproject.toml does not name yet"
        )
    else:
        assert fragments(member), "a version that the changelog does not describe needs a news fragment"


@BY_NAME
def test_news_fragments_have_a_known_kind_and_render(member: Member) -> None:
    kinds = {kind["directory"] for kind in member.pyproject["tool"]["towncrier"]["type"]}
    assert {name.split(".")[1] for name in fragments(member)} <= kinds
    result = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", member.version],
        cwd=member.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in fragments(member):
        assert (member.folder / "news" / name).read_text().split("\n")[0] in result.stdout


@BY_NAME
def test_tags_are_described_by_the_changelog(member: Member) -> None:
    listed = subprocess.run(
        ["git", "tag", "--list", f"{member.name}-v*"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    tagged = {Version(tag.removeprefix(f"{member.name}-v")) for tag in listed.split()}
    assert tagged <= set(released(member))


def test_the_platform_is_versioned_after_its_vllm() -> None:
    (platform,) = [member for member in PUBLISHED if member.name == "vllm-ascend"]
    newest = max(Version(path.stem.removeprefix("vllm-")) for path in (ROOT / "integration/sets").glob("vllm-*.toml"))
    assert Version(platform.version).release[:2] == newest.release[:2]
