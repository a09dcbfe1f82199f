"""Old phrases and names, as regular expressions, and what takes their place."""

WORDS = {
    r"\bcuts?\b": "threshold; apply a threshold; label set",
    r"\blean(s|ed|ing)?\b|\bboosts? of rare labels": "rare-label boost (`propensity_weight`)",
    r"\bpromis(e|es|ed|ing)\b": "guarantee",
    r"\bparted\b": "separated",
    r"\b(never|not) met\b|\bunmet\b": "not in the training data; unseen label",
    r"\bdoors?\b|\bways? in(?! which)\b": "interface: Python, command line, HTTP",
    r"\btraining views?\b": "training data of a source",
    r"\blist-relative\b": "relative to the row's candidates",
    r"\bheld-out quality\b": "held-out estimates, or the metric: nDCG@5, micro-F1",
    r"\bleak(s|ed|y)?\b": "data leakage",
    r"\brow's own labels\b": "data leakage",
    r"\bhouse\b|\brooms?\b": "package, part of the package",
    r"\btold\b|\bas it stands\b|\bbe it\b|\bbut for\b|\bwithout a word\b|\bthere are those\b": "plain words",
    r"\bis no probability\b|\bare no probabilities\b": "is not a probability",
    r"\bguesses, by their frequency\b": "in order of frequency",
    r"\bcandidates of others\b": "candidates from your own retriever",
    r"\bLearnedCuts\b|\bNoCuts\b": "LearnedThresholds, NoThresholds",
    r"\b(Global|Half|Label|HalfF1|ExpectedF1|Instance|Subset)Cut\b": "GlobalThreshold, LabelThresholds, ...",
    r"\bcuts_\b|\b(recall|precision)_cuts\b": "by_metric_, recall_thresholds, precision_thresholds",
    r"\blet_through\b": "surest_rows",
}
