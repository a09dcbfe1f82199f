"""Classifiers of small label sets: kernel machines, forests, boosted trees."""
