"""The training rows of a label: how near, how many, and what neighbours vote."""
