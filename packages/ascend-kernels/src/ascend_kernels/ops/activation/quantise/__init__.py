"""What the quantising operators share: one kernel over rows, and its launch plan."""
