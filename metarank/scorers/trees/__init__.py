"""Trees over labels and over instances, and the tail classifiers that re-rank what they find."""
