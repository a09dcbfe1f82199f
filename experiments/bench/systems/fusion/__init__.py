"""Scores of others fused, re-ranked, as features of pairs; and what one would write for these oneself."""
