"""Subwords: the same for the same texts, none for what is unknown, and a slow merge of pairs as a twin."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from metarank.text.subwords import PAD, Subwords, TokenLists

TEXTS = ["Red wine", "red tea, green tea", "reading red-hot tea", "tea for two", "Навигатор", "навигация"]


@pytest.fixture(scope="module")
def subwords():
    return Subwords.trained(TEXTS, 60)


def slow_encode(subwords, text):
    """Merge the pair that was learned first until no pair is known."""
    model = json.loads(subwords.state)["model"]
    rank = {tuple(pair): i for i, pair in enumerate(model["merges"])}
    ids = []
    for word in text.lower().replace(",", " , ").replace("-", " - ").split():
        pieces = ["▁", *word]
        while pairs := [(rank[p], i) for i, p in enumerate(pairwise(pieces)) if p in rank]:
            _, i = min(pairs)
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
        ids += [model["vocab"][piece] for piece in pieces]
    return ids


def test_the_slow_twin_agrees(subwords):
    for text in [*TEXTS, "tea", "wired", "dare-not, tea"]:
        known = "".join(c for c in text if c.lower() in subwords.words() or c in " ,-")
        assert subwords.encode([known], 100).tokens.tolist() == slow_encode(subwords, known)


def test_vocabulary(subwords):
    words = subwords.words()
    assert words[PAD] == "[pad]"
    assert len(words) == len(set(words)) == len(subwords) <= 60
    assert {"▁red", "▁tea"} <= set(words)
    for size in (2, 3, 10, 25):
        assert len(Subwords.trained(TEXTS, size)) <= size
    assert Subwords.trained([], 100).words() == ["[pad]", "▁"]


def test_case_and_unicode_forms_do_not_matter(subwords):
    a, b = subwords.encode(["RED Tea", "red tea"], 10).padded()[0]
    np.testing.assert_array_equal(a, b)
    a, b = subwords.encode(["ｒｅｄ", "red"], 10).padded()[0]
    np.testing.assert_array_equal(a, b)


def test_what_is_unknown_leaves_nothing(subwords):
    lists = subwords.encode(["", "   ", "☃ ☃☃", "☃ tea ☃", "[pad] tea"], 10)
    assert np.diff(lists.indptr)[:3].tolist() == [0, 0, 0]
    tea = subwords.encode(["tea"], 10).tokens.tolist()
    assert lists.tokens[lists.indptr[3] : lists.indptr[4]].tolist() == tea
    assert PAD not in lists.tokens


def test_only_the_first_subwords_are_kept(subwords):
    all_, few = (subwords.encode(TEXTS, length) for length in (100, 2))
    assert np.diff(few.indptr).tolist() == np.minimum(np.diff(all_.indptr), 2).tolist()
    assert few.tokens[:2].tolist() == all_.tokens[:2].tolist()


def test_state_is_all_there_is(subwords):
    again = Subwords(subwords.state)
    assert again.state == subwords.state
    np.testing.assert_array_equal(again.encode(TEXTS, 9).tokens, subwords.encode(TEXTS, 9).tokens)


def test_other_processes_learn_the_same(subwords):
    code = (
        "import sys; from metarank.text.subwords import Subwords\n"
        f"sys.stdout.buffer.write(Subwords.trained({TEXTS!r}, 60).state.encode())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert out.decode() == subwords.state


def test_token_lists():
    lists = TokenLists(np.array([0, 2, 2, 5]), np.array([1, 2, 3, 4, 5], np.int32))
    taken = lists.take(np.array([2, 0, 1, 2]))
    assert taken.indptr.tolist() == [0, 3, 5, 5, 8]
    assert taken.tokens.tolist() == [3, 4, 5, 1, 2, 3, 4, 5]
    padded, lengths = taken.padded()
    assert padded.tolist() == [[3, 4, 5], [1, 2, 0], [0, 0, 0], [3, 4, 5]]
    assert lengths.tolist() == [3, 2, 0, 3]
    assert TokenLists(np.array([0]), np.array([], np.int32)).padded()[0].shape == (0, 1)
