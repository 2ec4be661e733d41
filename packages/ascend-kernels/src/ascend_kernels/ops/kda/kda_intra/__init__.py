"""What of a chunk of Kimi Delta Attention depends on no state; a part of chunk_kda."""
