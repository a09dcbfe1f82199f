"""pydocs: the parts of a docstring, the names of a See Also section, the data set."""

import os
import subprocess
import sys

import numpy as np
import pytest

from metarank.data import pydocs

DOC = """
norm(x, ord=None)

Matrix or `vector norm`, see :func:`~numpy.dot`.

.. deprecated:: 1.8
    Do not use
    it.

.. math::

   x^2

.. note:: A note
   stays.

More
text.

Parameters
----------
x, y : array_like
    Input.
*args
    Others.

See Also
--------
scipy.linalg.norm : Similar function in SciPy.
dot, vdot : products
    of vectors
:func:`cross`
"""


def test_sections_and_paragraphs():
    sections = pydocs._sections(DOC.strip())
    assert list(sections) == ["", "parameters", "see also"]
    paragraphs = pydocs._paragraphs(sections[""])
    assert paragraphs == ["Matrix or vector norm, see numpy.dot.", "stays.", "More text."]
    text = pydocs._text("numpy.linalg.norm", paragraphs, sections)
    assert text.splitlines()[0] == "numpy.linalg.norm"
    assert text.splitlines()[-1] == "x, y, args"
    assert "scipy" not in text


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["scipy.linalg.norm : Similar function."], ["scipy.linalg.norm"]),
        (["dot, vdot: products", "    inner, outer"], ["dot", "vdot"]),
        (["hstack, vstack,", "dstack"], ["hstack", "vstack", "", "dstack"]),
        ([":func:`~numpy.sin` : sine", ":meth:`fit`"], ["numpy.sin", "fit"]),
        (["`numpy.cos`"], ["numpy.cos"]),
        (["- tan : tangent"], ["tan"]),
        (["Read about `numpy.tan` and the others."], ["numpy.tan"]),
        (["Nothing is named here at all."], []),
        ([], []),
    ],
)
def test_names_in_a_see_also_section(lines, names):
    assert [n for n in pydocs._names_in(lines) if n] == [n for n in names if n]


def test_names_are_resolved_from_the_nearest_scope_outwards():
    names = "numpy.dot numpy.linalg.norm numpy.ma.dot numpy.ndarray.sort numpy.linalg.only scipy.norm"
    documents = dict.fromkeys(names.split())
    resolve = pydocs._Resolver({"numpy.vecdot": "numpy.dot", **{d: d for d in documents}}, documents)
    assert resolve("dot", "numpy.ma.sum") == "numpy.ma.dot"
    assert resolve("dot", "numpy.linalg.cond") == "numpy.dot"
    assert resolve("vecdot", "numpy.linalg.cond") == "numpy.dot"
    assert resolve("linalg.norm", "numpy.dot") == "numpy.linalg.norm"
    assert resolve("np.dot", "scipy.norm") == "numpy.dot"
    assert resolve("ndarray.sort", "numpy.dot") == "numpy.ndarray.sort"
    assert resolve("only", "numpy.dot") == "numpy.linalg.only"  # unique in the package
    assert resolve("only", "scipy.norm") is None
    assert resolve("", "numpy.dot") is None


@pytest.fixture(scope="module")
def whole():
    return pydocs.load_pydocs()


def test_size_and_shape(whole):
    n, n_labels = whole.Y.shape
    assert n > 1500
    assert n_labels > 1500
    assert 2 < whole.Y.nnz / n < 4
    assert len(whole.texts) == n
    assert len(whole.label_names) == len(whole.label_texts) == n_labels
    assert whole.Y.dtype == np.float32
    assert whole.Y.has_canonical_format
    assert np.diff(whole.Y.indptr).min() >= 1
    assert np.bincount(whole.Y.indices, minlength=n_labels).min() >= 1


def test_known_relations(whole):
    row = {text.splitlines()[0]: i for i, text in enumerate(whole.texts)}

    def labels(name):
        return {whole.label_names[j] for j in whole.Y[row[name]].indices}

    assert "numpy.multiply" not in labels("numpy.linalg.norm")
    assert "scipy.linalg.norm" in labels("numpy.linalg.norm")
    assert {"numpy.minimum", "numpy.fmax"} <= labels("numpy.maximum")  # a ufunc
    assert "sklearn.linear_model.LassoCV" in labels("sklearn.linear_model.Lasso")
    assert {"numpy.argsort", "numpy.lexsort"} <= labels("numpy.ndarray.sort")
    text = whole.label_texts[whole.label_names.index("scipy.linalg.norm")]
    assert text == "scipy.linalg.norm: Matrix or vector norm."


def test_no_document_is_its_own_label_nor_keeps_its_see_also(whole):
    assert whole.label_names == sorted(set(whole.label_names))
    for i, text in enumerate(whole.texts):
        assert text.splitlines()[0] not in {whole.label_names[j] for j in whole.Y[i].indices}
        assert "See Also\n" not in text


def test_own_labels_are_never_given(whole):
    own = pydocs.own_labels(whole)
    named = np.flatnonzero(own >= 0)
    assert own.shape == (whole.n_rows,)
    assert len(named) > 500
    assert whole.Y[named, own[named]].sum() == 0
    assert all(whole.texts[i].startswith(whole.label_names[own[i]]) for i in named)


def test_texts_are_distinct_and_public(whole):
    bodies = [text.partition("\n")[2] for text in whole.texts]
    assert len(set(whole.texts)) == len(whole.texts)
    assert len(set(bodies)) > 0.97 * len(bodies)
    for name in whole.label_names:
        assert name.split(".")[0] in pydocs.PACKAGES
        assert not any(part.startswith("_") for part in name.split("."))


def test_split_is_a_partition_with_the_labels_of_the_whole(whole):
    train, test = pydocs.load_pydocs("train"), pydocs.load_pydocs("test")
    assert train.label_names == test.label_names == whole.label_names
    assert sorted(train.texts + test.texts) == sorted(whole.texts)
    assert 0.15 < len(test.texts) / len(whole.texts) < 0.25
    other = pydocs.load_pydocs("test", seed=1)
    assert set(other.texts) != set(test.texts)
    with pytest.raises(ValueError, match="split must be None, 'train' or 'test', got 'dev'"):
        pydocs.load_pydocs("dev")


@pytest.mark.check
def test_another_process_builds_the_same(whole):
    program = """
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer
from metarank.data.pydocs import load_pydocs
ds = load_pydocs()
print([ds.texts, ds.label_texts, ds.Y.indices.tolist()])
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONUTF8": "1"},
    )
    assert run.stdout.strip() == str([whole.texts, whole.label_texts, whole.Y.indices.tolist()])
    assert run.stderr == ""
