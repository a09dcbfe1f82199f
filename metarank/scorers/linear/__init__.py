"""A linear classifier for every label."""
