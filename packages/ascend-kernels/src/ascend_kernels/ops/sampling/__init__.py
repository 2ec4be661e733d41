"""Operators on logits: probabilities, penalties, truncation and sampling."""
