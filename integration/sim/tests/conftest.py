"""Tests of the simulated NPU. They run on the build for the present sources: `python -m ascend_sim build`."""

import os

os.environ.setdefault("ASCEND_SIM_EVENT_TIMEOUT", "0.2")  # before torch_npu reads it: some tests wait for it
