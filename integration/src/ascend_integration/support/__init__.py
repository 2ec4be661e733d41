"""What is supported, as a table of what tests show: family, feature, oracle, file."""
