# SPDX-License-Identifier: Apache-2.0
"""References of matrix products with quantised operands, of groups of matrices and across ranks."""
