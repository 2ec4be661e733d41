"""End-to-end tests: engines in the test process, on the simulated NPU, compared with transformers."""

from ascend_integration.engine.environment import prepare_test_environment

prepare_test_environment()
