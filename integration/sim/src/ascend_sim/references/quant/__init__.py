# SPDX-License-Identifier: Apache-2.0
"""Quantising to 8 and 4 bits, packed formats, and the operators that quantise what they compute."""
