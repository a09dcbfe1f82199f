"""The compiled evaluator gives LightGBM's own bytes."""

import pickle
import platform

import lightgbm as lgb
import numpy as np
import pytest

from metarank import _core
from metarank.types.boosters import BoosterArrays

ONE_ROW = np.zeros((1, 1))
QUIET = {"verbose": -1, "num_threads": 1, "force_row_wise": True, "min_data_in_leaf": 3}


def features(seed: int, n: int = 300, d: int = 6) -> np.ndarray:
    """Columns with NaN, with many zeros, with tiny values around LightGBM's zero, and plain ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random(n) < 0.2, 0] = np.nan
    X[rng.random(n) < 0.5, 1] = 0.0
    X[:, 2] = rng.choice([-1e-34, -1e-35, -1e-36, 0.0, 1e-36, 1e-35, 1e-34], size=n)
    return X


def train(seed: int = 0, rounds: int = 20, n_classes: int = 1, **params: object) -> lgb.Booster:
    X = features(seed)
    signal = np.nan_to_num(X[:, 0]) + X[:, 1] * X[:, 3] + np.sign(X[:, 2])
    if n_classes > 1:
        params |= {"objective": "multiclass", "num_class": n_classes}
        y = np.digitize(signal, np.quantile(signal, np.linspace(0, 1, n_classes + 1)[1:-1]))
    else:
        params = {"objective": "binary"} | params
        y = signal > 0
    return lgb.train(QUIET | {"num_leaves": 15} | params, lgb.Dataset(X, y), rounds)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"zero_as_missing": True},
        {"use_missing": False},
        {"boosting": "dart"},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"n_classes": 3},
        {"objective": "l1"},
    ],
    ids=str,
)
def test_same_bytes_as_lightgbm(params: dict, dtype: type) -> None:
    booster = train(**params)
    X = features(1, n=500).astype(dtype)
    X[::9, 3] = np.nan  # a column without NaN in training
    X[1::9, 4] = [np.inf, -np.inf] * 28
    np.testing.assert_array_equal(
        BoosterArrays.from_lightgbm(booster).predict(X), booster.predict(X, raw_score=True)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("params", [{}, {"zero_as_missing": True}, {"use_missing": False}], ids=str)
def test_shares_of_features_are_those_of_lightgbm(params: dict, dtype: type) -> None:
    booster = train(num_leaves=40, **params)
    X = features(1, n=100).astype(dtype)
    X[::9, 3] = np.nan
    arrays, expected = BoosterArrays.from_lightgbm(booster), booster.predict(X, pred_contrib=True)
    found = arrays.contributions(X)
    np.testing.assert_allclose(arrays.importances(), booster.feature_importance("gain"), rtol=1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    if platform.machine() in ("x86_64", "AMD64"):  # elsewhere LightGBM's compiler contracts
        assert found.tobytes() == expected.tobytes()


def test_a_tree_without_a_split_and_shares_of_no_rows() -> None:
    booster = train(rounds=2, min_gain_to_split=1e9)
    arrays, X = BoosterArrays.from_lightgbm(booster), features(3, n=5)
    np.testing.assert_array_equal(arrays.predict(X), booster.predict(X, raw_score=True))
    np.testing.assert_array_equal(arrays.contributions(X)[:, -1], arrays.predict(X))
    assert arrays.contributions(X[:0]).shape == (0, X.shape[1] + 1)
    assert not BoosterArrays.without_trees(6).contributions(X).any()


def test_shares_are_of_trees_alone() -> None:
    """Each node a child once, and no deeper than the recursion may go; threads change no byte."""

    def shares(children: list[list[int]], X: np.ndarray = ONE_ROW, n_threads: int = 1) -> np.ndarray:
        n = len(children)
        return _core.tree_shares(
            np.zeros(n, np.int32), np.zeros(n), np.array(children, np.int32), np.zeros(n, np.uint8),
            np.zeros(1, np.int32), np.ones(n + 1), np.ones(n, np.int32), np.ones(n + 1, np.int32),
            X, n_threads,
        )  # fmt: skip

    with pytest.raises(ValueError, match="child once"):
        shares([[1, 1], [~0, ~1]])
    with pytest.raises(ValueError, match="1024 deep"):
        shares([[i + 1, ~i] for i in range(1024)] + [[~1024, ~1025]])
    np.testing.assert_array_equal(shares([[i + 1, ~i] for i in range(1023)] + [[~1023, ~1024]])[0, 1], 1025)
    X = np.random.default_rng(0).normal(size=(200, 1))
    assert shares([[~0, 1], [~1, ~2]], X, 4).tobytes() == shares([[~0, 1], [~1, ~2]], X).tobytes()


def test_best_iteration_is_respected() -> None:
    booster = train()
    booster.best_iteration = 7
    arrays = BoosterArrays.from_lightgbm(booster)
    assert arrays.n_trees == 7
    X = features(2)
    np.testing.assert_array_equal(arrays.predict(X), booster.predict(X, raw_score=True))


def test_batch_split_row_order_and_threads_change_no_byte() -> None:
    arrays = BoosterArrays.from_lightgbm(train())
    X = features(4, n=333).astype(np.float32)
    whole = arrays.predict(X)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(arrays.predict(X, n_jobs=4), whole)
    np.testing.assert_array_equal(arrays.predict(X[order], n_jobs=3), whole[order])
    np.testing.assert_array_equal(np.concatenate([arrays.predict(x[None]) for x in X]), whole)
    assert arrays.predict(X[:0]).shape == (0,)


def test_stack_puts_outputs_side_by_side() -> None:
    parts = [BoosterArrays.from_lightgbm(train(s, n_classes=c)) for s, c in ((0, 1), (1, 3), (2, 1))]
    X = features(5)
    stacked = BoosterArrays.stack(parts)
    np.testing.assert_array_equal(stacked.predict(X), np.column_stack([p.predict(X) for p in parts]))
    np.testing.assert_array_equal(stacked.only(4).predict(X), parts[2].predict(X))
    shares = [stacked.only(k).contributions(X) for k in range(5)]
    np.testing.assert_array_equal(stacked.contributions(X), np.mean(shares, axis=0))


def test_state_and_pickle() -> None:
    arrays = BoosterArrays.from_lightgbm(train())
    X = features(6)
    for copy in (BoosterArrays.from_state(arrays.get_state()), pickle.loads(pickle.dumps(arrays))):
        np.testing.assert_array_equal(copy.predict(X), arrays.predict(X))


def test_unsupported_trees_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 5, 200), rng.normal(size=200)])
    y = rng.random(200) < np.where(X[:, 0] % 2, 0.9, 0.1)
    onehot = {"objective": "binary", "max_cat_to_onehot": 99}
    categorical = lgb.train(QUIET | onehot, lgb.Dataset(X, y, categorical_feature=[0]), 3)
    linear = lgb.train(QUIET | {"objective": "l2", "linear_tree": True}, lgb.Dataset(X, y), 3)
    for booster in (categorical, linear):
        with pytest.raises(ValueError, match="numerical splits and constant leaves"):
            BoosterArrays.from_lightgbm(booster)


def test_damaged_arrays_and_wrong_width_are_refused() -> None:
    arrays = BoosterArrays.from_lightgbm(train())
    with pytest.raises(ValueError, match=r"X must have shape \(n, 6\)"):
        arrays.predict(np.zeros((2, 5)))
    state = arrays.get_state()
    damage = [("feature", 6), ("children", 10**6), ("children", 0), ("children", -(10**6))]
    for name, bad in [*damage, ("node_count", -1), ("leaf_count", -1), ("gain", np.nan)]:
        broken = state[name].copy()
        broken.flat[-1] = bad
        with pytest.raises(ValueError, match="must"):
            BoosterArrays.from_state(state | {name: broken})
    with pytest.raises(ValueError, match="must be a node or a leaf"):
        BoosterArrays.from_state(state | {"root": state["root"] + 10**6})


@pytest.mark.parametrize("num_leaves", [2, 31, 32, 33, 60])
def test_masks_of_leaves_agree_with_the_walk(num_leaves: int) -> None:
    """Float32 rows without NaN take the masks where trees have at most 32 leaves, float64 rows never do."""
    booster = train(7, num_leaves=num_leaves, min_data_in_leaf=1)
    arrays = BoosterArrays.from_lightgbm(booster)
    rng = np.random.default_rng(7)
    # Values at the thresholds, one float to either side, and beyond all of them.
    near = arrays.threshold.astype(np.float32)
    near = np.concatenate(
        [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    )
    X = rng.choice(np.append(near, np.float32([0, -np.inf, np.inf])), size=(400, 6))
    np.testing.assert_array_equal(arrays.predict(X), arrays.predict(X.astype(np.float64)))
    np.testing.assert_array_equal(arrays.predict(X), booster.predict(X, raw_score=True))


def test_thresholds_beyond_the_range_of_float32() -> None:
    arrays = BoosterArrays(
        feature=np.array([0, 0, 0], np.int32),
        threshold=np.array([-1e300, 0.1, 1e300]),
        children=np.array([[~0, 1], [~1, 2], [~2, ~3]], np.int32),
        missing=np.zeros(3, np.uint8),
        gain=np.zeros(3),
        node_count=np.ones(3, np.int32),
        root=np.array([0], np.int32),
        leaf_value=np.arange(4.0),
        leaf_count=np.ones(4, np.int32),
        output=np.array([0], np.int32),
        n_features=1,
        n_outputs=1,
    )
    largest = np.finfo(np.float32).max
    X = np.array([[-np.inf], [-largest], [0.1], [largest], [np.inf]], np.float32)
    np.testing.assert_array_equal(arrays.predict(X), [0, 1, 2, 2, 3])
