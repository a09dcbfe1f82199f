"""Which tests `make test-quick` and `make test` leave out, beside those marked `check`."""

from pathlib import Path

# All of them are left to `make check`.
CHECKS = Path(__file__).parent / "check"
# Files of tests that fit many models, or start processes: `make test-quick` is without them.
SLOW = {
    "cli", "dense_index", "demo", "distributed",
    "estimator_manners", "exclude", "fitted_is_loadable",
    "global_settings", "held_out_quality", "hidden_labels", "inputs_as_people_have_them",
    "inputs_stay_apart", "instance_trees", "integer_ids", "label_names", "label_tree",
    "label_tree_predict", "leakage", "multi_objective", "objectives",
    "one_answer", "one_vs_all", "pareto_front", "persist", "pipeline", "pipeline_objectives",
    "progress", "propensity_weight", "pydocs", "rankers", "report",
    "serve", "serve_process", "sklearn_contract", "source_laws", "suggest_missing",
    "text_embedder", "thresholds", "unknown_labels", "untrusted_models",
    "vectorizer", "vocabulary", "xc",
}  # fmt: skip


def is_slow(path: Path) -> bool:
    """Whether a file of tests is left out of `make test-quick`."""
    return path.stem.removeprefix("test_") in SLOW
