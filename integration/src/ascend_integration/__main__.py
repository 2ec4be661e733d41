"""`python -m ascend_integration`."""

from ascend_integration.cli import app

app(prog_name="python -m ascend_integration")
