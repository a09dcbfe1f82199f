"""What others say of pairs: every container is read alike, and what is malformed is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.types.candidates import Candidates
from metarank.types.given import Given, PairTable, check_names_given, read_given
from metarank.types.label_table import LabelTable

TABLE = LabelTable(3, ["sea", "sun", "sand"])
SCORES = sp.csr_matrix(np.float32([[0.5, 0, 2.0], [0, 0, 0], [0, -1.0, 0]]))
pd = pytest.importorskip("pandas")
FRAME = pd.DataFrame({"row": [2, 0, 0], "label": ["sun", "sand", "sea"], "score": [-1.0, 2.0, 0.5]})
FORMS = {
    "csr": SCORES,
    "coo of integers": sp.coo_array(SCORES * 2),
    "candidates": Candidates.from_csr(SCORES),
    "pairs": [[("sand", 2.0), ("sea", 0.5)], [], [(1, -1)]],
    "lists of lists": [[[0, 0.5], [2, 2.0]], [], [["sun", -1.0]]],
    "dicts": [{"sand": 2.0, "sea": 0.5}, {}, {"sun": -1.0}],
    "frame": FRAME,
    "table": PairTable(np.array([2, 0, 0]), ["1", "sand", "sea"], np.array([-1.0, 2, 0.5]), None, True),
}


def as_read(values, **options) -> sp.csr_matrix:
    given = read_given({"bm25": values}, None, options.get("n_rows", 3), options.get("table", TABLE))
    assert given is not None
    return given.scores["bm25"]


@pytest.mark.parametrize("form", FORMS)
def test_every_container_says_the_same(form):
    scale = 2.0 if form == "coo of integers" else 1.0
    found = as_read(FORMS[form])
    assert found.dtype == np.float32
    assert found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), SCORES.toarray() * scale)
    assert found.nnz == 3


def test_stored_zeros_are_candidates():
    stored = SCORES.copy()
    stored.data[:] = 0
    assert as_read(stored).nnz == 3


def test_labels_alone_are_best_first():
    np.testing.assert_allclose(
        as_read([["sun", "sea"], [], [2]]).toarray(), [[0.5, 1, 0], [0, 0, 0], [0, 0, 1]]
    )
    given = read_given(None, {"seen": [["sun", "sea"], [], []]}, 3, TABLE)
    assert given is not None
    np.testing.assert_array_equal(given.features["seen"].toarray()[0], [1, 1, 0])


def test_unnamed_candidates_and_tables_of_several_sources():
    assert list(read_given(SCORES, None, 3, TABLE).scores) == ["given"]
    several = read_given(FRAME.assign(source=["knn", "bm25", "knn"]), None, 3, TABLE)
    assert list(several.scores) == ["bm25", "knn"]
    assert list(read_given({"knn": SCORES, "bm25": SCORES}, None, 3, TABLE).scores) == ["knn", "bm25"]
    assert several.scores["knn"].toarray()[2, 1] == -1


def test_what_is_given_is_copied():
    own = SCORES.copy()
    found = as_read(own)
    own.data[:] = 7
    np.testing.assert_array_equal(found.toarray(), SCORES.toarray())


def test_removed_labels_are_left_out():
    found = as_read(SCORES, table=LabelTable(3, TABLE.names, [2]))
    np.testing.assert_array_equal(found.toarray()[0], [0.5, 0, 0])
    assert found.nnz == 2


BAD = [
    (SCORES[:2], "must have 3 rows and 3 labels, got 2 and 3"),
    (SCORES[:, :2], "must have 3 rows and 3 labels, got 3 and 2"),
    ([["sun"]], "must have 3 rows and 3 labels, got 1 and 3"),
    ([["moon"], [], []], r"must name known labels.*'moon' at row 0"),
    ([[(7, 1.0)], [], []], r"ids in \[0, 3\) or names, got 7 at row 0"),
    ([[("sun", np.nan)], [], []], "must hold finite scores, got nan for sun at row 0"),
    ([[("sun", 1e300)], [], []], "must hold finite scores, got inf for sun at row 0"),
    ([[], [("sun", "high")], []], "must hold scores that are numbers, got 'high' at row 1"),
    ([[], [("sun", 1.0), "sea"], []], "must hold a score of every label or of none, got 'sea' at row 1"),
    ([["sun"], [], [("sun", 1.0)]], "must hold a score of every label or of none, got 'sun' at row 0"),
    ([[("sun", 1.0), ("sun", 0.5)], [], []], "must hold a pair once, got sun twice at row 0"),
    ([[], ["sun", 1], []], "must hold a pair once, got sun twice at row 1"),
    (pd.concat([FRAME, FRAME]), "must hold a pair once, got sun twice at row 2"),
    (FRAME.assign(source=["x", "y", "x"]), "must hold pairs of one source, got 'x' and 'y'"),
    ([[], "sun", []], "must hold a list of labels or of .label, score. a row, got 'sun' at row 1"),
    ("sun", "must be a sparse matrix"),
    (np.ones((3, 3)), "got a dense array: pass scipy.sparse.csr_matrix"),
    (FRAME.assign(row=[0, 0, 5]), r"must hold rows in \[0, 3\), got 5"),
    ({"sun": 1.0}, "must be a sparse matrix .* got dict"),
    (FRAME.drop(columns="score"), "must be a table with the columns row, label and score.*no score"),
    (FRAME.assign(row=["a", "b", "c"]), "must hold positions of rows in its column row, got 'a'"),
    (sp.csr_matrix((3, 3), dtype=complex), "must hold numbers"),
]


@pytest.mark.parametrize(("values", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_what_is_malformed_is_refused_by_name(values, message):
    with pytest.raises((ValueError, TypeError), match=r"^candidates\['bm25'\] .*" + f"({message})"):
        as_read(values)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ({}, "candidates must hold a source at least, got an empty dict"),
        ({"": SCORES}, "candidates must name its sources by texts, got ''"),
        ({3: SCORES}, "candidates must name its sources by texts, got 3"),
        (FRAME.assign(source=["", "a", "b"]), "candidates must name its sources by texts, got ''"),
    ],
)
def test_names_of_sources(candidates, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read_given(candidates, None, 3, TABLE)


def test_an_answer_needs_the_sources_of_the_fit():
    given = Given(3, 3, {"bm25": SCORES})
    check_names_given(given, ["bm25"], [])
    with pytest.raises(ValueError, match="candidates must hold those of the fit, 'bm25', 'knn': got 'bm25'"):
        check_names_given(given, ["bm25", "knn"], [])
    with pytest.raises(ValueError, match="candidates must hold those of the fit, 'knn': got 'bm25'"):
        check_names_given(given, ["knn"], [])
    with pytest.raises(ValueError, match="candidates must be None: got 'bm25'"):
        check_names_given(given, [], [])
    with pytest.raises(ValueError, match="pair_features must hold those of the fit, 'clicks': got none"):
        check_names_given(given, ["bm25"], ["clicks"])
