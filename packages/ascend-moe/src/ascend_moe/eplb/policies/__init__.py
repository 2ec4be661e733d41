"""The policies of this distribution, one file each; the entry points in pyproject.toml name their classes."""
