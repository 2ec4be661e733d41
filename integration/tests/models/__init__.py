"""Model families beside text generation, and features of serving, against oracles that are not ours."""
