"""Settings come from the environment and are refused with the variable, the value and what is allowed."""

import pytest

from ascend_sim.settings import SettingsError, load_settings, parse_size


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "SOC",
        "DEVICES",
        "MEMORY",
        "ORACLE_FP32",
        "ADOPT",
        "EVENT_TIMEOUT",
        "TRACE",
        "ORDER",
        "SEED",
        "CHROME_TRACE",
    ):
        monkeypatch.delenv(f"ASCEND_SIM_{name}", raising=False)
    monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)


def test_defaults() -> None:
    settings = load_settings()
    assert (settings.soc, settings.devices, settings.memory) == ("Ascend910B1", 2, 8 << 30)
    assert settings.adopt == ("ascend_kernels",)
    assert (settings.order, settings.seed) == ("off", 0)


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 8 << 30), ("512 MiB", 512 << 20), ("1.5gib", 3 << 29), ("1024", 1024), ("7B", 7)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_values_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_SIM_SOC", "Ascend910_9392")
    monkeypatch.setenv("ASCEND_SIM_DEVICES", "4")
    monkeypatch.setenv("ASCEND_SIM_MEMORY", "2GiB")
    monkeypatch.setenv("ASCEND_SIM_ADOPT", "mine, yours")
    monkeypatch.setenv("ASCEND_SIM_ORACLE_FP32", "1")
    monkeypatch.setenv("ASCEND_SIM_ORDER", "random")
    monkeypatch.setenv("ASCEND_SIM_SEED", "7")
    settings = load_settings()
    assert (settings.soc, settings.devices, settings.memory) == ("Ascend910_9392", 4, 2 << 30)
    assert settings.adopt == ("mine", "yours")
    assert settings.oracle_fp32
    assert (settings.order, settings.seed) == ("random", 7)


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("ASCEND_SIM_SOC", "Ascend910B9", "nearest: Ascend910B"),
        ("ASCEND_SIM_DEVICES", "0", "greater than or equal to 1"),
        ("ASCEND_SIM_DEVICES", "two", "valid integer"),
        ("ASCEND_SIM_MEMORY", "8 gigs", 'a size such as "8GiB"'),
        ("ASCEND_SIM_MEMORY", "1MiB", "greater than or equal to 67108864"),
        ("ASCEND_SIM_ADOPT", "aten", "namespaces of custom operators"),
        ("ASCEND_SIM_TRACE", "maybe", "valid boolean"),
        ("ASCEND_SIM_ORDER", "strict", "'off', 'check' or 'random'"),
        ("ASCEND_SIM_EVENT_TIMEOUT", "inf", "less than or equal to 86400"),
        ("ASCEND_SIM_MEMORY", "99999999TiB", "less than or equal to"),
        ("ASCEND_SIM_CHROME_TRACE", "/nowhere/run.json", "a folder that exists.*; /nowhere is none"),
        ("ASCEND_SIM_SEED", "-1", "greater than or equal to 0"),
        ("ASCEND_SIM", "yes", "0 .off. or 1"),
    ],
)
def test_a_bad_value_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, allowed: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match=f"{variable}='{value}': expected .*{allowed}"):
        load_settings()


def test_an_unknown_variable_is_refused_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_SIM_MEMRY", "8GiB")
    with pytest.raises(SettingsError, match="ASCEND_SIM_MEMRY is not a setting.*ASCEND_SIM_MEMORY"):
        load_settings()


def test_visible_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_SIM_DEVICES", "4")
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "3,1")
    assert load_settings().visible_devices == 2
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "4")
    with pytest.raises(SettingsError, match="ASCEND_RT_VISIBLE_DEVICES='4'.*ASCEND_SIM_DEVICES=4"):
        load_settings().visible_devices  # noqa: B018
