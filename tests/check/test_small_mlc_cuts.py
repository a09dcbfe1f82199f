"""experiments/small_mlc: cuts learned for peers as for metarank, and the page that compares them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

FOLDER = Path(__file__).parents[2] / "experiments" / "small_mlc"
_PATH, _MODULES = list(sys.path), dict(sys.modules)
# Another study may have a module of the same name.
_OWN = (
    *("cache", "cuts_page", "datasets", "lambda_net", "learned_cuts", "methods", "paper_cut", "plot"),
    *("rankers", "run", "tables", "timing"),
)
for _name in _OWN:
    sys.modules.pop(_name, None)
sys.path[:0] = [str(FOLDER)]

import baselines  # noqa: E402
import cuts_page  # noqa: E402
import datasets  # noqa: E402
import learned_cuts  # noqa: E402
import methods  # noqa: E402
import paper_cut  # noqa: E402
import tables  # noqa: E402

sys.path[:] = _PATH
for _name in _OWN:
    sys.modules.pop(_name, None)
sys.modules.update({name: module for name, module in _MODULES.items() if name in _OWN})

from metarank import metrics  # noqa: E402

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


def test_the_page_names_the_best_other_and_the_rule_it_cuts_by(results):
    page = cuts_page.page(results)
    others = cuts_page.others(results, "emotions", "micro-F1", cuts_page.RULES)
    assert {"Logistic", "Logistic, regression", "Logistic, learned cuts"} <= set(others)
    assert "extra trees 500 (noted)" in others
    who, value = cuts_page.best(others, "micro-F1", 3)
    assert f"{value:.3f} {who}" in page.replace("**", "")
    assert "| emotions | RBFSVM | not run |" in page
    assert page.count("\n| emotions |") >= 3 + len(methods.CUTS)
    scores = cuts_page.others(results, "emotions", "MAP", cuts_page.RULES)
    assert {name for name in scores if "noted" not in name} == {"Logistic", "Binary-SVM"}


def test_the_svm_on_text_is_the_svm_on_dense_rows(problem):
    X = np.where(problem.scaled > 0, problem.scaled, 0).astype(np.float32)
    dense = baselines.RBFSVM(given={"C": 3.0}).fit(X, problem.Y).scores(X[:20])
    text = baselines.RBFSVM(given={"C": 3.0}).fit(sp.csr_matrix(X), problem.Y).scores(sp.csr_matrix(X[:20]))
    np.testing.assert_allclose(text, dense, atol=1e-4)


def test_verdicts_count_what_was_run_alone(problem, results):
    both = {**results.truth, "scene": problem.Y_test}
    told = cuts_page.verdict(tables.Results(both, results.results))
    assert told == cuts_page.verdict(results)
    assert told.count(" of 3 cells") == 2


def test_a_part_without_metarank_has_its_tables_too(problem, results):
    found = {key: result for key, result in results.results.items() if key[1] != "metarank"}
    part = tables.Results(results.truth, found)
    assert tables.cells(part)[0].startswith("0 of 0 cells")
    assert "| micro-F1" in cuts_page.page(part)
