# SPDX-License-Identifier: Apache-2.0
"""The registry as a whole: names, signatures, sources and limits, against the schemas torch_npu registers."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_npu

from ascend_sim.references import Grade, limits, reference, register_all, registered

REFERENCES = registered()
SCHEMAS = [s for s in torch._C._jit_get_all_schemas() if s.name.startswith(("npu::", "atb::"))]
DENSE = {
    "atb::_npu_matmul_add_fp32",
    "atb::_npu_paged_attention",
    "atb::_npu_paged_attention_get_workspace",
    "atb::_npu_reshape_and_cache",
    "atb::_npu_rotary_embedding",
    "npu::_npu_fused_infer_attention_score_get_max_workspace",
    "npu::_npu_fused_infer_attention_score_v2_get_max_workspace",
    "npu::npu_add_rms_norm",
    "npu::npu_apply_rotary_pos_emb",
    "npu::npu_attention_update",
    "npu::npu_fast_gelu",
    "npu::npu_format_cast",
    "npu::npu_fused_infer_attention_score",
    "npu::npu_fused_infer_attention_score.out",
    "npu::npu_fused_infer_attention_score_v2",
    "npu::npu_fused_infer_attention_score_v2.out",
    "npu::npu_fusion_attention",
    "npu::npu_gather_pa_kv_cache",
    "npu::npu_gemma_rms_norm",
    "npu::npu_mrope",
    "npu::npu_rms_norm",
    "npu::npu_rotary_mul",
    "npu::npu_scatter_pa_kv_cache",
    "npu::npu_swiglu",
    "npu::npu_top_k_top_p",
}
"""What models with dense attention and feed-forward layers call."""


def schema(name: str) -> Any:
    operator, _, overload = name.partition(".")
    return torch._C._get_schema(operator, overload)


def test_registering_again_changes_nothing() -> None:
    assert register_all() == register_all() == list(REFERENCES)


def test_every_operator_dense_models_use_has_a_reference() -> None:
    assert set(REFERENCES) >= DENSE


@pytest.mark.parametrize("name", REFERENCES)
def test_kernel_has_the_schemas_parameters(name: str) -> None:
    """The dispatcher leaves defaults out, so a kernel's own must be the schema's; positions must agree too."""
    parameters = inspect.signature(REFERENCES[name].kernel).parameters
    rest = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    takes_all = any(p.kind in rest for p in parameters.values())
    arguments = {a.name: a for a in schema(name).arguments}
    named = [p for p in parameters.values() if p.kind not in rest]
    if takes_all:
        assert {p.name for p in named} <= set(arguments)
    else:
        assert [p.name for p in named] == list(arguments)
    for parameter in named:
        argument = arguments[parameter.name]
        assert (parameter.kind is inspect.Parameter.KEYWORD_ONLY) == argument.kwarg_only
        if parameter.default is not inspect.Parameter.empty:
            assert argument.has_default_value()
            assert parameter.default == argument.default_value


@pytest.mark.parametrize("name", REFERENCES)
def test_every_reference_names_its_source(name: str) -> None:
    entry = REFERENCES[name]
    assert entry.grade in Grade
    assert entry.source.startswith(("torch_npu 2.13.0 ", "Ascend/op-plugin", "cann/"))
    if entry.grade is Grade.GUESSED:
        assert entry.note


@pytest.mark.parametrize("name", REFERENCES)
def test_every_reference_has_limits_or_says_that_none_are_documented(name: str) -> None:
    row = limits.table()[name.split("::")[1].partition(".")[0]]
    assert row.soc or row.dtypes or row.dtypes_on or row.rules or not row.capture or row.open


def test_pages_of_the_wheel_exist() -> None:
    """Sources that name a page or a Meta kernel inside torch_npu name one that is there."""
    folder = Path(torch_npu.__file__).parent
    pages = set(re.findall(r'^\s*"([\w.]+)",$', (folder / "_op_plugin_docs.py").read_text(encoding="utf-8"), re.M))
    metas = (folder / "op_plugin/meta/_meta_registrations.py").read_text(encoding="utf-8")
    sources = [entry.source for entry in REFERENCES.values()] + [row.source for row in limits.table().values()]
    for source in sources:
        for name in re.findall(r"_op_plugin_docs.py: (\w[\w.]*)", source):
            assert name in pages
        for name in re.findall(r"_meta_registrations.py: (\w+)", source):
            assert f'"{name}"' in metas


def test_two_references_for_one_operator_are_refused() -> None:
    with pytest.raises(ValueError, match="npu::npu_silu has two references"):
        reference("npu::npu_silu", source="-", grade=Grade.GUESSED)(lambda input: input)


@pytest.mark.parametrize("op", limits.table())
def test_limits_name_arguments_the_operator_has(op: str) -> None:
    """A row may be shared, so an argument need belong to one of the operators that share it."""
    row = limits.table()[op]
    schemas = {other: [s for s in SCHEMAS if s.name.split("::")[1] == other] for other in row.ops}
    assert all(schemas.values())
    assert row.arguments() <= {a.name for found in schemas.values() for s in found for a in s.arguments}
    assert row.oracle <= set(row.dtypes)


def test_an_operator_with_two_rows_is_refused() -> None:
    entry = {"ops": ["npu_swiglu"], "source": "-"}
    with pytest.raises(ValueError, match=r"npu_swiglu has two rows, in a\.yaml and b\.yaml"):
        limits.merge({"a.yaml": [entry], "b.yaml": [entry]})


META = {
    "npu_rms_norm": (torch.ones(2, 3, 8), torch.ones(8)),
    "npu_gemma_rms_norm": (torch.ones(2, 3, 8), torch.ones(8)),
    "npu_add_rms_norm": (torch.ones(2, 8).half(), torch.ones(2, 8).half(), torch.ones(8).half()),
    "npu_add_rms_norm_v2": (torch.ones(2, 8), torch.ones(2, 8), torch.ones(8)),
    "npu_add_rms_norm_cast": (torch.ones(2, 8).half(), torch.ones(2, 8).half(), torch.ones(8).half()),
    "npu_add_rms_norm_quant": (*[torch.ones(2, 8).half()] * 2, torch.ones(8).half(), torch.ones(8), None),
    "npu_add_rms_norm_dynamic_quant": (*[torch.ones(2, 8).half()] * 2, torch.ones(8).half()),
    "npu_swiglu": (torch.ones(2, 8).half(),),
    "npu_clipped_swiglu": (torch.ones(2, 8),),
    "npu_fast_gelu": (torch.ones(2, 8),),
    "npu_rotary_mul": (torch.ones(1, 2, 3, 8), torch.ones(1, 2, 1, 8), torch.ones(1, 2, 1, 8)),
    "npu_interleave_rope": tuple(torch.ones(1, n, 3, 64).half() for n in (2, 1, 1)),
    "npu_top_k_top_p": (torch.ones(2, 8), torch.ones(2), torch.ones(2, dtype=torch.int32)),
    "npu_dynamic_quant": (torch.ones(2, 3, 8).half(),),
    "npu_quantize": (torch.ones(2, 8), torch.ones(8), None, 12, -1),
    "npu_linear": (torch.ones(2, 8), torch.ones(4, 8)),
    "npu_attention_update": ([torch.zeros(2)] * 2, [torch.zeros(2, 8)] * 2, 0),
    "npu_scatter_nd_update": (torch.ones(4, 8), torch.zeros(2, 1, dtype=torch.long), torch.ones(2, 8)),
}


@pytest.mark.parametrize("op", META)
def test_results_have_the_meta_kernels_shapes_and_dtypes(op: str) -> None:
    def to_meta(value: Any) -> Any:
        if isinstance(value, list):
            return [to_meta(item) for item in value]
        return value.to("meta") if isinstance(value, torch.Tensor) else value

    def described(result: Any) -> list[tuple[torch.Size, torch.dtype]]:
        return [(t.shape, t.dtype) for t in (result if isinstance(result, tuple) else (result,))]

    operator = getattr(torch.ops.npu, op)
    assert described(operator(*META[op])) == described(operator(*map(to_meta, META[op])))


def test_oracle_mode_allows_float32_attention_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.ORACLE_VARIABLE, "1")
    row = limits.table()["npu_fused_infer_attention_score"]
    limits.check_dtype("npu_fused_infer_attention_score", "query", torch.ones(1), row)
    with pytest.raises(RuntimeError, match="block_table is float32"):
        limits.check_dtype("npu_fused_infer_attention_score", "block_table", torch.ones(1), row)
    with pytest.raises(RuntimeError, match="query is float64"):
        limits.check_dtype("npu_fused_infer_attention_score", "query", torch.ones(1).double(), row)
