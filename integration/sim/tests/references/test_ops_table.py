# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_sim import ops_table
from ascend_sim.references import Grade, registered

PAGE = Path(__file__).parents[2] / "docs" / "ops.md"


def test_lists_every_operator_of_torch_npu_once(report: Callable[..., None]) -> None:
    """torch_npu 2.13.0 registers 462 operators in namespaces npu and atb."""
    found = ops_table.operators()
    for grade in Grade:
        report(
            "torch_npu's operators by grade of their reference",
            grade=grade,
            operators=sum(op.grade == grade for op in found),
        )
    report(
        "torch_npu's operators by grade of their reference",
        grade="none",
        operators=sum(not op.reference for op in found),
    )
    for op in found:
        if op.grade == Grade.GUESSED:
            report("Guessed references", operator=op.name, why=op.note)
    assert len({op.name for op in found}) == len(found) == 462
    assert {op.name for op in found if op.reference} == set(registered())


def test_describes_an_operator() -> None:
    found = {op.name: op for op in ops_table.operators()}
    norm = found["npu::npu_rms_norm"]
    assert norm.schema.startswith("npu::npu_rms_norm(Tensor input, Tensor gamma, float epsilon")
    assert (norm.meta, norm.reference, norm.grade) == (True, True, "golden")
    assert found["npu::npu_yolo_boxes_encode"].reference is False
    assert found["npu::npu_fused_infer_attention_score.out"].operator == "npu_fused_infer_attention_score"


def test_finds_calls_in_python_files(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "a.py").write_text("torch_npu.npu_swiglu(x)\ntorch.ops.atb._npu_reshape_and_cache(k)\n")
    (tmp_path / "b.py").write_text("out = torch.ops.npu.npu_fused_infer_attention_score.out(q)\nother.npu_gelu(x)\n")
    (tmp_path / "c.txt").write_text("torch_npu.npu_mish(x)")
    assert ops_table.used_in([tmp_path]) == {"npu_swiglu", "_npu_reshape_and_cache", "npu_fused_infer_attention_score"}


def test_prints_json_of_what_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text("torch_npu.npu_swiglu(x)")
    ops_table.main(as_json=True, used_only=True, sources=[tmp_path])
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["name"] == "npu::npu_swiglu"
    assert entry["grade"] == "documented"


def test_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text("torch_npu.npu_swiglu(x)\ntorch_npu.npu_roi_align(x)")
    ops_table.main(used_only=True, sources=[tmp_path])
    printed = capsys.readouterr().out
    assert "2 operators of torch_npu, 1 with a reference" in printed
    assert "npu::npu_roi_align" in printed


def test_writes_between_the_marks_only(tmp_path: Path) -> None:
    page = tmp_path / "ops.md"
    page.write_text("before\n" + "\n".join(ops_table._MARKS) + "\nafter\n")
    ops_table.main(page=page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "| `npu::npu_swiglu` | yes | documented |" in text


def test_refuses_a_page_without_marks(tmp_path: Path) -> None:
    page = tmp_path / "ops.md"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="lacks the marks"):
        ops_table.main(page=page)


def test_the_committed_page_is_up_to_date() -> None:
    assert ops_table.markdown(ops_table.operators()) in PAGE.read_text(encoding="utf-8")
