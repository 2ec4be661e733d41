"""What tests and benchmarks of operators share: tolerances, awkward tensors, and running one implementation of many."""

from ascend_kernels.testing.implementations import IMPLEMENTATIONS, TRITON_PLANS, opcheck, run
from ascend_kernels.testing.tensors import AWKWARD_ROWS, AWKWARD_SIZES, FLOATS, guarded, poisoned
from ascend_kernels.testing.tolerances import Kind, assert_close, relative_error

__all__ = [
    "AWKWARD_ROWS",
    "AWKWARD_SIZES",
    "FLOATS",
    "IMPLEMENTATIONS",
    "TRITON_PLANS",
    "Kind",
    "assert_close",
    "guarded",
    "opcheck",
    "poisoned",
    "relative_error",
    "run",
]
