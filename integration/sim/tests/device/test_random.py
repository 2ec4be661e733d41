"""Random draws: per device, seedable, a function of seed and offset."""

import pytest
import torch

DRAWS = [
    pytest.param(lambda g: torch.empty(5, device="npu").uniform_(generator=g), id="uniform_"),
    pytest.param(lambda g: torch.empty(5, device="npu").exponential_(generator=g), id="exponential_"),
    pytest.param(lambda g: torch.rand(5, device="npu", generator=g), id="rand"),
    pytest.param(lambda g: torch.randn(5, device="npu", generator=g), id="randn"),
    pytest.param(lambda g: torch.randint(1000, (5,), device="npu", generator=g), id="randint"),
    pytest.param(lambda g: torch.randperm(50, device="npu", generator=g), id="randperm"),
    pytest.param(lambda g: torch.multinomial(torch.ones(50, device="npu"), 5, generator=g), id="multinomial"),
]
IMPLICIT = [
    *(pytest.param(lambda g, draw=p.values[0]: draw(None), id=p.id) for p in DRAWS),
    pytest.param(lambda g: torch.rand_like(torch.ones(5, device="npu")), id="rand_like"),
    pytest.param(lambda g: torch.nn.functional.dropout(torch.ones(50, device="npu"), 0.5), id="dropout"),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_generator_reproduces_its_draws(draw) -> None:
    generator = torch.Generator("npu").manual_seed(5)
    first, second = draw(generator), draw(generator)
    assert not torch.equal(first, second)
    generator.manual_seed(5)
    assert torch.equal(draw(generator), first)


@pytest.mark.parametrize("draw", IMPLICIT)
def test_without_a_generator_the_device_generator_draws(draw) -> None:
    host = torch.get_rng_state()
    torch.npu.manual_seed(5)
    first, second = draw(None), draw(None)
    assert not torch.equal(first, second)
    torch.npu.manual_seed(5)
    assert torch.equal(draw(None), first)
    assert torch.equal(torch.get_rng_state(), host)  # the CPU's generator is not touched


def test_setting_back_the_offset_repeats_the_draw() -> None:
    """vLLM takes the draw of a discarded token back with `set_offset(get_offset() - 4)`."""
    generator = torch.Generator("npu").manual_seed(1)
    torch.rand(3, device="npu", generator=generator)
    draw = torch.rand(3, device="npu", generator=generator)
    after = torch.rand(3, device="npu", generator=generator)
    generator.set_offset(generator.get_offset() - 8)
    assert torch.equal(torch.rand(3, device="npu", generator=generator), draw)
    assert torch.equal(torch.rand(3, device="npu", generator=generator), after)


def test_state_can_be_saved_and_restored() -> None:
    torch.npu.manual_seed(3)
    state = torch.npu.get_rng_state()
    first = torch.rand(4, device="npu")
    torch.npu.set_rng_state(state)
    assert torch.equal(torch.rand(4, device="npu"), first)


def test_devices_draw_independently() -> None:
    torch.npu.manual_seed_all(9)
    first = torch.rand(4, device="npu:0")
    torch.rand(4, device="npu:0")
    assert torch.equal(torch.rand(4, device="npu:1").cpu(), first.cpu())


def test_uniform_draws_of_many_seeds_are_uniform() -> None:
    """The first draw of 2,000 seeds: mean 1/2, variance 1/12, within five standard errors."""
    generator = torch.Generator("npu")
    draws = torch.stack(
        [torch.rand(4, device="npu", generator=generator.manual_seed(seed)) for seed in range(2000)]
    ).cpu()
    assert abs(draws.mean().item() - 1 / 2) < 5 * (1 / 12 / draws.numel()) ** 0.5
    assert abs(draws.var().item() - 1 / 12) < 5 * (1 / 180 / draws.numel()) ** 0.5
    correlation = torch.corrcoef(torch.stack([draws[:-1, 0], draws[1:, 0]]))
    assert abs(correlation[0, 1].item()) < 5 / 2000**0.5
