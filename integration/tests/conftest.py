"""End-to-end tests: engines in the test process, on the simulated NPU, compared with transformers."""

import pytest

from ascend_integration.engine.environment import prepare_test_environment

prepare_test_environment()


def pytest_configure(config: pytest.Config) -> None:
    """Warnings of packages that neither they here nor we can mend."""
    for warning in (
        # torch.utils.mkldnn of torch 2.13 decorates its own classes with what torch deprecates.
        "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning",
        # triton-ascend looks for CANN's compiler when it is imported; there is none beside the simulation.
        r"ignore:.*No such file or directory. 'ccec':UserWarning",
    ):
        config.addinivalue_line("filterwarnings", warning)
