"""Process-group communication over HCCL."""
