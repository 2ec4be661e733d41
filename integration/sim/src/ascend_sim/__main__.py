"""`python -m ascend_sim`."""

from ascend_sim.cli import app

app(prog_name="python -m ascend_sim")
