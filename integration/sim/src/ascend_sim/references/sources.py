# SPDX-License-Identifier: Apache-2.0
"""Where references and limits come from. Every function returns the text that is shown as an operator's source."""

from __future__ import annotations


def wheel_doc(op: str) -> str:
    """The operator's documentation shipped inside torch_npu 2.13.0 (``torch_npu/_op_plugin_docs.py``)."""
    return f"torch_npu 2.13.0 _op_plugin_docs.py: {op}"


def wheel_meta(op: str) -> str:
    """The operator's shape inference inside torch_npu 2.13.0 (``torch_npu/op_plugin/meta/_meta_registrations.py``)."""
    return f"torch_npu 2.13.0 _meta_registrations.py: {op}"


def op_plugin_doc(op: str, commit: str) -> str:
    """The operator's API page in the Ascend/op-plugin repository, as of ``commit``."""
    return f"Ascend/op-plugin@{commit} docs/context/torch_npu-{op}.md"


def op_plugin_test(name: str) -> str:
    """The vendor's hardware test with its CPU golden in the Ascend/op-plugin repository."""
    return f"Ascend/op-plugin test/test_custom_ops/{name}.py"


def cann_doc(repository: str, page: str) -> str:
    """A page of CANN's operator libraries (``ops-transformer``, ``ops-nn``)."""
    return f"cann/{repository} {page}"
