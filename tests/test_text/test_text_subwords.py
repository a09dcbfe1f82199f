"""Subwords: the same for the same texts, none for what is unknown; slow twins of merges and of counts."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from metarank.text.subword_vectors import first_vectors
from metarank.text.subwords import PAD, Subwords

TEXTS = ["Red wine", "red tea, green tea", "reading red-hot tea", "tea for two", "Навигатор", "навигация"]


@pytest.fixture(scope="module")
def subwords():
    return Subwords.trained(TEXTS, 60)


def ids_of(subwords, text):
    ids = subwords.encode([text], 100)[0]
    return ids[ids != PAD].tolist()


def slow_encode(subwords, text):
    """Merge the pair that was learned first until no pair is known."""
    rank = {tuple(pair.split(" ")): i for i, pair in enumerate(subwords.merges)}
    ids = []
    for word in text.lower().replace(",", " , ").replace("-", " - ").split():
        pieces = ["▁", *word]
        while pairs := [(rank[p], i) for i, p in enumerate(pairwise(pieces)) if p in rank]:
            _, i = min(pairs)
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        ids += [subwords.words.index(piece) for piece in pieces]
    return ids


def test_the_slow_twin_agrees(subwords):
    for text in [*TEXTS, "tea", "wired", "dare-not, tea"]:
        known = "".join(c for c in text if c.lower() in subwords.words or c in " ,-")
        assert ids_of(subwords, known) == slow_encode(subwords, known)


def test_vocabulary(subwords):
    words = subwords.words
    assert words[PAD] == "[pad]"
    assert len(words) == len(set(words)) == len(subwords) <= 60
    assert {"▁red", "▁tea"} <= set(words)
    for size in (2, 3, 10, 25):
        assert len(Subwords.trained(TEXTS, size)) <= size
    assert Subwords.trained([], 100).words == ["[pad]", "▁"]


@pytest.mark.parametrize(
    ("text", "same"), [("RED Tea", "red tea"), ("ｒｅｄ", "red"), ("☃ tea ☃", "tea"), ("☃ ☃☃", ""), (" ", "")]
)
def test_case_unicode_forms_and_unknown_characters_do_not_matter(subwords, text, same):
    assert ids_of(subwords, text) == ids_of(subwords, same)


def test_only_the_first_subwords_are_kept(subwords):
    every, few = (subwords.encode(TEXTS, length) for length in (100, 2))
    np.testing.assert_array_equal(few, every[:, :2])
    assert subwords.encode([], 9).shape == (0, 1)


def test_other_processes_learn_the_same(subwords):
    code = (
        "import sys; from metarank.text.subwords import Subwords\n"
        f"sys.stdout.buffer.write(str(Subwords.trained({TEXTS!r}, 60).get_state()).encode())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert out.decode() == str(subwords.get_state())
    again = Subwords.from_state(subwords.get_state())
    np.testing.assert_array_equal(again.encode(TEXTS, 9), subwords.encode(TEXTS, 9))


def test_vectors_begin_alike_for_subwords_of_the_same_texts():
    """Against a slow twin: the mutual information by loops, its singular vectors by LAPACK."""
    rng = np.random.default_rng(0)
    lists = [rng.choice(np.arange(1, 12), rng.integers(1, 7)) for _ in range(40)]
    texts = np.array([[*tokens, *[PAD] * (7 - len(tokens))] for tokens in lists])
    found = first_vectors(texts, 13, dim=5, seed=0)
    together, df = np.zeros((13, 13)), np.zeros(13)
    for tokens in map(sorted, map(set, lists)):
        df[tokens] += 1
        for a in tokens:
            for b in tokens:
                together[a, b] += 0 if a == b else 1 / (len(tokens) - 1)
    total = together.sum(axis=1)
    smooth = total**0.75 / (total**0.75).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(together / np.outer(total, smooth))
    information = np.where(together > 0, np.maximum(information, 0), 0)
    left, values, _ = np.linalg.svd(information)
    slow = left[:, :5] * np.sqrt(values[:5]) * np.log(4 / 3 * 41 / (df + 1))[:, None]
    slow /= np.sqrt(df @ (slow**2).sum(axis=1) / df.sum())
    np.testing.assert_allclose(found @ found.T, slow @ slow.T, atol=0.02)
    np.testing.assert_allclose(found[[0, 12]], 0, atol=1e-6)
