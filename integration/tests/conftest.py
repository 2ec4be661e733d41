"""End-to-end tests: engines in the test process, on the simulated NPU, compared with transformers."""

import pytest

from ascend_integration.engine.environment import prepare_test_environment
from ascend_integration.support import hooks

prepare_test_environment()


def pytest_addoption(parser: pytest.Parser) -> None:
    hooks.add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    hooks.note_rows(config, items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    hooks.print_table(terminalreporter)


def pytest_configure(config: pytest.Config) -> None:
    """The mark of what tests show, and warnings of packages that neither they here nor we can mend."""
    hooks.configure(config)
    for warning in (
        # torch.utils.mkldnn of torch 2.13 decorates its own classes with what torch deprecates.
        "ignore:`torch.jit.script_method` is deprecated:DeprecationWarning",
        # triton-ascend looks for CANN's compiler when it is imported; there is none beside the simulation.
        r"ignore:.*No such file or directory. 'ccec':UserWarning",
    ):
        config.addinivalue_line("filterwarnings", warning)
