"""What no model file can hold, or reading would refuse, is refused before the training."""

import makers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from metarank import Dataset, MetaRanker, MultiObjectiveRanker, load
from metarank.data.vectorizer import TextVectorizer
from metarank.scorers.neighbors.voting import LabelNeighbors, NeighborShortlister
from metarank.shortlist import FastXML
from metarank.types.view import TrainingSet

QUICK = {"effort": "low", "n_jobs": 1, "n_folds": 2, "ranker": "logistic"}
BAD = "b\ud800d"  # half of a character: Python holds it, UTF-8 does not
DENSE, SPARSE, TEXTS = makers.dense(), makers.sparse(), makers.texts()
NAMES = [[TEXTS.label_names[j] for j in row.indices] for row in TEXTS.Y]
GRADES = np.arange(60) % 3


def model(X, Y=None, **params):
    return MetaRanker(**{**QUICK, **params}).fit(X, Y)


def objectives(X, Y, **params):
    return MultiObjectiveRanker(**{"n_rounds": 2, "n_jobs": 1, **params}).fit(X, Y)


def neighbors(scorer):
    return scorer.fit(TrainingSet(DENSE.X, DENSE.Y, np.zeros(60, np.int32)).view())


def frame(name):
    return pd.DataFrame(DENSE.X, columns=pd.Index([name, *"bcdef"], dtype=object))


def wide(n_features):
    X = SPARSE.X
    return sp.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], n_features))


REFUSED = {
    "Y": lambda: model(list(TEXTS.texts), [[BAD], *NAMES[1:]]),
    "Y, as classes": lambda: model(DENSE.X, [BAD, "b"] * 30),
    "the columns of Y": lambda: model(DENSE.X, frame(BAD).abs()),
    "label_names": lambda: model(Dataset(DENSE.X, DENSE.Y, label_names=[BAD, *"bcd"])),
    "feature_names": lambda: Dataset(DENSE.X, DENSE.Y, feature_names=[BAD, *"bcdef"]),
    "label_texts": lambda: Dataset(DENSE.X, DENSE.Y, label_texts=[BAD, *"bcd"]),
    "the columns of X": lambda: model(frame(BAD), DENSE.Y),
    "the objectives of Y": lambda: model(DENSE.X, {"a": DENSE.Y, BAD: DENSE.Y}, ranker="auto"),
    "the objectives of Y, alone": lambda: objectives(DENSE.X, {"a": GRADES, BAD: GRADES}),
    "the columns of X, alone": lambda: objectives(frame(BAD), GRADES),
    "n_jobs": lambda: model(DENSE, n_jobs=1025),
    "n_jobs, of objectives": lambda: objectives(DENSE.X, GRADES, n_jobs=2000),
    "random_state": lambda: model(DENSE, random_state=2**31),
    "shortlist_size": lambda: model(DENSE, shortlist_size=2**31),
    "propensity_weight": lambda: model(DENSE, propensity_weight=11),
    "X": lambda: model(wide((1 << 24) + 1), SPARSE.Y),
    "X, of a shortlister": lambda: FastXML(n_trees=1).fit(wide(1 << 25), SPARSE.Y, n_jobs=1),
    "X, of objectives": lambda: objectives(wide(1 << 25), GRADES),
    "ks": lambda: neighbors(NeighborShortlister(ks=((1 << 16) + 1,))),
    "k": lambda: neighbors(LabelNeighbors(k=(1 << 16) + 1)),
    "word_ngrams": lambda: TextVectorizer(word_ngrams=1001).fit(["some words"]),
    "min_df": lambda: TextVectorizer(min_df=2**31).fit(["some words"]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_could_not_be_loaded_is_refused_by_name(what):
    name = what.partition(",")[0]
    with pytest.raises(ValueError, match=f"^{name} must") as e:
        REFUSED[what]()
    assert "\n" not in str(e.value)
    assert type(e.value) is ValueError


LOADED = {
    "texts that UTF-8 cannot write": lambda: model(["sea w\ud800rd sand", *TEXTS.texts[1:]], NAMES),
    "titles that UTF-8 cannot write": lambda: model(Dataset(DENSE.X, DENSE.Y, titles=[BAD] * 60)),
    "most threads": lambda: MetaRanker(**QUICK).fit(DENSE).set_params(n_jobs=1024),
    "all cores left free": lambda: model(DENSE, n_jobs=-2000),
    "integers and texts of NumPy": lambda: model(
        DENSE, n_jobs=np.int64(1), n_folds=np.int64(2), ranker=np.str_("logistic")
    ),
    "tuples": lambda: model(list(TEXTS.texts), NAMES, features=("names", "votes")),
    "largest seed": lambda: model(DENSE, random_state=2**31 - 1),
    "most features": lambda: FastXML(n_trees=1).fit(wide(1 << 24), SPARSE.Y, n_jobs=1),
    "most neighbours": lambda: neighbors(NeighborShortlister(ks=(1 << 16,))),
    "columns that hardly vary": lambda: model((DENSE.X * 1e-42).astype(np.float32), DENSE.Y),
    "large values": lambda: model((DENSE.X * 1e37).astype(np.float32), DENSE.Y),
    "large grades": lambda: model(DENSE.X, DENSE.Y * np.float32(1e37)),
    "weights of objectives": lambda: objectives(
        DENSE.X, {"a": GRADES, "b": GRADES > 0}, weights={"a": np.float32(2)}, params={"learning_rate": 0.1}
    ),
    "largest seed of objectives": lambda: objectives(DENSE.X, GRADES, random_state=2**63 - 1),
    "longest terms": lambda: TextVectorizer(word_ngrams=1000).fit(["some words"]),
}


@pytest.mark.parametrize("what", LOADED)
def test_what_is_fitted_is_saved_and_loaded(what, tmp_path):
    fitted = LOADED[what]()
    before = makers.saved_bytes(fitted, tmp_path / "model")
    again = load(tmp_path / "model")
    assert makers.saved_bytes(again, tmp_path / "again") == before
