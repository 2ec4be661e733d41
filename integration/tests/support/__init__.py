"""The table of what is supported."""
