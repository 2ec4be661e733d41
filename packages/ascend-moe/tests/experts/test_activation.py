"""Every activation against its formula, by name and by enum, at and beyond its limit."""

from enum import Enum

import pytest
import torch

from ascend_moe.experts import Activation

from .oracle import activate


class Names(Enum):
    """What a model library might hand over instead of a word."""

    SILU = "silu"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"
    SWIGLUOAI = "swigluoai"
    SWIGLUSTEP = "swiglustep"


@pytest.fixture(scope="module")
def rows() -> torch.Tensor:
    return torch.rand(3, 32, generator=torch.Generator().manual_seed(0)) * 100 - 50


@pytest.mark.parametrize("name", [it.value for it in Names])
@pytest.mark.parametrize("limit", [None, 0.0, 10.0], ids=["own-limit", "no-limit", "limit-10"])
def test_equals_the_formula(name: str, limit: float | None, rows: torch.Tensor) -> None:
    # va#9589, va#9600, va#10258: limit 0 clamped everything, other limits were lost. va#8465: an enum became SwiGLU.
    if limit and name.startswith("gelu"):
        with pytest.raises(ValueError, match=f"the expert activation '{name}' takes no limit, 10.0 was given"):
            Activation.of(name, limit)
        return
    expected = torch.stack([activate(name, row, limit) for row in rows.double()])
    by_name = Activation.of(name, limit)(rows.npu()).cpu()
    by_enum = Activation.of(Names(name), limit)(rows.npu()).cpu()
    torch.testing.assert_close(by_name.double(), expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(by_name, by_enum)


@pytest.mark.parametrize(("alias", "name"), [("swiglu", "silu"), ("gelu_pytorch_tanh", "gelu_tanh")])
def test_aliases(alias: str, name: str) -> None:
    assert Activation.of(alias) == Activation.of(name)


def test_only_the_oai_form_has_alpha_and_bias() -> None:
    assert (Activation.of("silu", 7.0).alpha, Activation.of("silu", 7.0).bias) == (1.0, 0.0)
    assert (Activation.of("swigluoai").alpha, Activation.of("swigluoai").bias) == (1.702, 1.0)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="no expert activation is called 'relu2'; there are silu, gelu, gelu_tanh"):
        Activation.of("relu2")
