"""Experiments of Lukasik et al. (2025): several binary labels, one ranking, by loss or label aggregation."""
