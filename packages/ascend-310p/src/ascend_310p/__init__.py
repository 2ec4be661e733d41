"""The older Ascend 310P hardware for vLLM.

What is there yet: see the README.
"""
