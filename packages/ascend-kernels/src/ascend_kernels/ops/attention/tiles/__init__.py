"""What the attention operators share: a tile of keys at a time, and the definition."""
