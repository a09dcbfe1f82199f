"""experiments/small_mlc: cuts learned for peers as for metarank, and the page that compares them."""

from __future__ import annotations

import numpy as np
import pytest
from studies import study

from metarank import metrics

with study("small_mlc"):
    import baselines
    import cuts_page
    import datasets
    import learned_cuts
    import methods
    import paper_cut
    import tables


SETTINGS = methods.Settings(quick=True, n_jobs=1)


@pytest.fixture(scope="module")
def problem() -> datasets.Problem:
    """Rare labels: a cut at probability .5 keeps almost none of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(450, 6)).astype(np.float32)
    Y = X @ rng.normal(size=(6, 4)) + 3 * rng.normal(size=(450, 4)) > 4.5
    return datasets.make_problem("emotions", X[:300], Y[:300], X[300:], Y[300:], {})


@pytest.fixture(scope="module")
def results(problem) -> tables.Results:
    found: dict[tuple[str, str], methods.Result | str] = {
        ("emotions", method.name): "not run" for method in cuts_page.METHODS
    }
    for kind in (baselines.LogisticOneVsRest, baselines.BinarySVM):
        result = methods.run_baseline(kind, problem, SETTINGS)
        learned = learned_cuts.learned_sets(result, problem.Y, 0)
        found["emotions", kind.__name__] = {
            **result,
            **learned,
            "regression": paper_cut.sets_of(result, problem.Y),
        }
    found["emotions", "metarank"] = methods.run_metarank(problem, SETTINGS, effort="low")
    return tables.Results({"emotions": problem.Y_test}, found)


def test_the_cut_is_learned_from_held_out_scores_alone(problem):
    model = methods.run_baseline(baselines.LogisticOneVsRest, problem, SETTINGS)
    first = learned_cuts.learned_sets(model, problem.Y, 0)
    assert {name for name in first if name.startswith("learned:")} == {f"learned:{m}" for m in methods.CUTS}
    again = learned_cuts.learned_sets(model | {"sets": None, "regression": None}, problem.Y, 0)
    other = learned_cuts.learned_sets(model | {"held_out": 0.3 * model["held_out"]}, problem.Y, 0)
    for metric in methods.CUTS:
        np.testing.assert_array_equal(first[f"learned:{metric}"], again[f"learned:{metric}"])
    # Three times the test scores of which it has learned: all that stood high is kept, and more.
    assert other["learned:micro-F1"].sum() > first["learned:micro-F1"].sum()


def test_held_out_scores_are_those_of_models_of_the_other_folds(problem):
    result = methods.run_baseline(baselines.BinarySVM, problem, SETTINGS)
    for inside, outside in baselines.base.folds_of(300, SETTINGS.seed):
        twin = baselines.BinarySVM(n_jobs=1, given=result["chosen"]).fit(
            problem.scaled[inside], problem.Y[inside]
        )
        np.testing.assert_array_equal(result["held_out"][outside], twin.scores(problem.scaled[outside]))


def test_learned_cuts_help_where_half_keeps_nothing(problem, results):
    own, learned = (
        results.value("emotions", "LogisticOneVsRest", "micro-F1", rule) for rule in ("sets", "learned")
    )
    assert learned > own + 0.1
    kept = results.judged("emotions", "LogisticOneVsRest", "micro-F1", "learned")
    assert learned == metrics.evaluate(results.truth["emotions"], None, ["micro-F1"], Y_pred=kept)["micro-F1"]
    # metarank has learned cuts alone, whatever the rule of the others.
    values = {results.value("emotions", "metarank", "macro-F1", rule) for rule in cuts_page.RULES}
    assert len(values) == 1
    assert np.isnan(results.value("emotions", "RBFSVM", "micro-F1", "learned"))
