# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from ascend_sim import limits_page
from ascend_sim.references.limits import Kind

PAGE = Path(__file__).parents[3] / "docs" / "limits.md"


def test_the_committed_page_is_up_to_date() -> None:
    assert limits_page.markdown(limits_page.rows()) in PAGE.read_text(encoding="utf-8")


def test_prints_one_operator(capsys: pytest.CaptureFixture[str]) -> None:
    limits_page.main("npu_swiglu")
    printed = capsys.readouterr().out
    assert printed.startswith(
        "### `npu_swiglu`\n\n- SoCs: 310P, A2, A3, A5\n- dtypes: `input`: bfloat16, float16, float32"
    )
    assert "- dtypes on 310P: `input`: float16, float32\n" in printed
    assert "- alignment: `input.shape[dim]` is multiples of 2\n" in printed
    assert "- source: torch_npu 2.13.0 _op_plugin_docs.py: npu_swiglu" in printed


def test_refuses_an_unknown_operator() -> None:
    with pytest.raises(ValueError, match="no limits are known of npu_swigloo"):
        limits_page.main("npu_swigloo")


def test_writes_between_the_marks_only(tmp_path: Path) -> None:
    page = tmp_path / "limits.md"
    page.write_text("before\n" + "\n".join(limits_page.MARKS) + "\nafter\n")
    limits_page.main(page=page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "### `npu_rms_norm`" in text
    page.write_text("nothing")
    with pytest.raises(ValueError, match="lacks the marks"):
        limits_page.main(page=page)


def test_reports_how_many_limits_there_are(report) -> None:
    found = limits_page.rows()
    counts = limits_page.counts(found)
    assert set(counts) == set(Kind)
    for kind, count in counts.items():
        report("Limits of the hardware by kind", kind=kind, limits=count)
    report("Limits of the hardware by kind", kind="(operators with a row)", limits=sum(len(row.ops) for row in found))
