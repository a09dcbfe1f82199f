"""`MetaRanker`: the estimator, its fit, its answers, and what becomes of a fitted model.

data -> shortlist -> candidates -> meta-features -> ranker -> thresholds
"""
