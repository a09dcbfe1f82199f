"""Instances of blocks in JSON: what is read, and what is refused."""

from __future__ import annotations

import makers
import numpy as np
import pytest

from metarank.apps.serve.block_instances import BlockReader
from metarank.apps.serve.errors import Refused
from metarank.data import Blocks
from metarank.data.block_encoder import BlocksEncoder

X = {
    "words": makers.sparse().X,
    "title": makers.texts().texts,
    "place": np.arange(180, dtype=np.float32).reshape(60, 3),
    "sizes": np.arange(120, dtype=np.float32).reshape(60, 2) % 7,
}
ONE = {"words": {"3": 1.0, "0": 2.0}, "title": "the sea", "place": [1, 2, 3], "sizes": [4, None]}


@pytest.fixture(scope="module")
def reader() -> BlockReader:
    encoder = BlocksEncoder()
    columns = {"sizes": ["long", "wide"]}
    kinds = {"words": "sparse", "title": "text", "place": "vector", "sizes": "numbers"}
    encoder.fit_encode(Blocks(X, kinds, columns))
    return BlockReader(encoder.needed, [], max_text=20)


def test_every_kind_of_block_is_read(reader):
    by_column = {name: value for name, value in ONE.items() if name != "sizes"} | {"long": 4, "wide": None}
    for one in (ONE, by_column):
        found = reader.read([one, one], "instances")
        assert found["words"].toarray()[0, :4].tolist() == [2, 0, 0, 1]
        assert found["words"].has_sorted_indices
        assert found["title"] == ["the sea"] * 2
        assert found["place"].tolist() == [[1, 2, 3]] * 2
        np.testing.assert_array_equal(found["sizes"], np.float32([[4, np.nan]] * 2))


def test_a_text_that_is_not_there_is_empty(reader):
    assert reader.read([ONE | {"title": None}, ONE], "instances")["title"] == ["", "the sea"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"words": {"3": 1.0, "03": 2.0}}, "must name each feature once"),
        ({"words": {"80": 1.0}}, "numbers of features in .0, 80. for keys"),
        ({"words": [1.0]}, "must be an object .number of a feature: value."),
        ({"place": [1, 2]}, "must have 3 values, got 2"),
        ({"place": [1, 2, 1e39]}, "must hold finite numbers"),
        ({"title": "a" * 21}, "must have at most 20 characters, got 21"),
        ({"sizes": [1, 2, 3]}, "must have no block but .*, got 'sizes'"),
        ({"colour": "red"}, "must have no block but .*, got 'colour'"),
    ],
)
def test_what_does_not_suit_its_block_is_refused(reader, change, said):
    with pytest.raises(Refused, match=said):
        reader.read([ONE, ONE | change], "instances")
