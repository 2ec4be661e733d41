"""transformers as the oracle of the end-to-end tests: eager attention on the CPU."""

from ascend_integration.oracle.reference import Greedy, Reference

__all__ = ["Greedy", "Reference"]
