"""Laws derived from the specs: a value that breaks its rule is refused, the others come back."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import ThresholdLearner, load
from metarank._util.registry import SAVED, SOURCES
from metarank.data.block_encoder import BlocksEncoder
from metarank.persist import fields as f
from metarank.persist import trust
from metarank.persist.spec import Saved, Spec
from metarank.persist.trust import class_of
from metarank.scorers.given.given_scorer import GivenScorer
from metarank.scorers.given.linear import GivenLinear
from metarank.scorers.given.pairs import GivenTogether, PairFeatures
from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.scorers.wrapped import BlockScorer
from metarank.text import LabelEmbedder
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.view import TrainingSet

# Classes that no model of `golden/kinds` holds.
SEEN_ELSEWHERE = {
    "TwoSided",
    "Encoder",
    "ObjectiveScorer",
    "AutoRanker",
    "OtherNames",
    "LabelTree",
    "NoThresholds",
    "KnownLabels",
}
KINDS = sorted(p.name for p in (Path(__file__).parents[1] / "golden/kinds").iterdir())


def parts(value, seen):
    """Every saved object within a value."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Saved):
        yield value
    children = vars(value) if isinstance(value, Saved) else value
    if isinstance(children, dict):
        children = children.values()
    if isinstance(children, (list, tuple, type({}.values()))):
        for child in list(children):
            yield from parts(child, seen)


@cache
def examples():
    """Objects of every class with a spec, from models of every kind: one for each form of a state."""
    found = {}
    for kind in KINDS:
        for part in parts(load(Path(__file__).parents[1] / "golden/kinds" / kind), set()):
            if part.saved is not None:
                found.setdefault((type(part).__name__, repr(shape_of(part.get_state()))), part)
    return [*found.values(), *fitted_now({name for name, _ in found} | SEEN_ELSEWHERE)]


def fitted_now(known):
    """What no folder of `golden/kinds` holds, such as new sources of the register."""
    yield LabelDescriptions(
        names=["a", "b"],
        alternative_names=[["c"], []],
        descriptions=["d", ""],
        parents=[[], ["a"]],
        vectors=np.eye(2),
    )
    ds = makers.sparse(40, L=4)
    view = makers.training_set(ds.X, ds.Y).view()
    for entry in SOURCES.values():
        if entry.cls not in known:
            yield entry.make()().fit(view)
    yield GivenScorer(given="bm25").fit(view)
    yield GivenTogether(given=["bm25", "knn"]).fit(view)
    yield GivenLinear(given=["bm25", "knn"]).fit(view)
    yield PairFeatures(names=("clicks",)).fit(view)
    encoder = BlocksEncoder()
    rows = makers.blocks(40)
    data = TrainingSet(encoder.fit_encode(rows.X), rows.Y, np.zeros(40), blocks=encoder.blocks)
    of_block = BlockScorer(scorer=LabelNeighbors(k=2), block="vector").fit(data.view())
    yield from (of_block, of_block.columns_)
    yield from (encoder, *encoder.parts, *(part.encoder for part in encoder.parts))
    cuts = ThresholdLearner("global").fit(ds.Y.toarray(), ds.Y)
    yield from (cuts, cuts.learned_, cuts.learned_.guarantees_)
    if find_spec("torch") is not None:
        small = {"subword_dim": 4, "hidden_dim": 4, "embedding_dim": 4, "n_epochs": 1, "n_jobs": 1}
        embedder = LabelEmbedder("concat", "cnn", **small).fit(
            ["red tea", "wine"] * 9, [["tea"], ["wine"]] * 9
        )
        yield from (embedder, embedder.subwords_)


def shape_of(state):
    """The keys of a state, and what is None."""
    if isinstance(state, dict):
        return {key: shape_of(value) for key, value in state.items()}
    return None if state is None else type(state).__name__


def named(classes):
    return sorted({type(part).__name__ for part in classes})


def leaves(fields, state, path=()):
    """(field, path of its value) of the fields that have a value in a state."""
    for field in fields:
        if isinstance(field, f.Group):
            if field.saved_key in state:
                yield from leaves(field.fields, state[field.saved_key], (*path, field.saved_key))
        elif field.saved_key in state:
            yield field, (*path, field.saved_key)


def at(state, path):
    for key in path:
        state = state[key]
    return state


def changed(state, path, value):
    """A copy of the dicts of a state with another value at a path."""
    out = dict(state)
    out[path[0]] = value if len(path) == 1 else changed(state[path[0]], path[1:], value)
    return out


def without(state, path):
    out = dict(state)
    if len(path) == 1:
        del out[path[0]]
    else:
        out[path[0]] = without(state[path[0]], path[1:])
    return out


NOTHING_LIKE_IT = object()


def breaches(field, value, shared):
    """Values in the place of a good one that the field's rule forbids."""
    yield NOTHING_LIKE_IT
    if not field.optional:
        yield None
    if isinstance(value, (np.ndarray, sp.csr_matrix)):
        yield from array_breaches(field, value, shared)
    if isinstance(field, f.Integer):
        yield from (field.least - 1, 2**63, True, float(field.least), str(field.least))
    elif isinstance(field, f.Number):
        yield from ("1", True, 10**400)
        yield from beyond(field)
        yield from [np.inf, -np.inf] if field.floats == "finite" else []
        yield from [np.nan] if field.floats != "any" else []
    elif isinstance(field, f.Flag):
        yield from (0, 1, "true")
    elif isinstance(field, f.Text):
        yield from (3, ["a"])
        yield from [] if field.choices is None else ["no such choice"]
    elif isinstance(field, f.Strings):
        yield from ("text", [1], {"a": "b"})
        yield from [[*value, "one more"]] if isinstance(field.n, str) and shared[field.n] > 1 else []
    elif isinstance(field, f.List):
        yield from ({}, "text", [NOTHING_LIKE_IT])
    elif isinstance(field, f.Each):
        yield from ([], "text", dict.fromkeys(value, NOTHING_LIKE_IT) or 3)
    elif isinstance(field, f.Params):
        yield from ([], {"no_such_parameter": 1}, dict.fromkeys(value, NOTHING_LIKE_IT) or 3)
    elif isinstance(field, f.Object):
        yield from ([], {}, "text")


def array_breaches(field, value, shared):
    if sp.issparse(value):
        yield sp.csr_matrix(value.astype(np.float64))
        yield value.toarray() if not isinstance(field, f.Rows) else NOTHING_LIKE_IT
        if value.nnz:
            yield sp.csr_matrix((np.full_like(value.data, np.nan), value.indices, value.indptr), value.shape)
        dims = field.dims
    else:
        yield from (value.astype(np.float16), value.astype(object), value[None], value.tolist())
        if value.ndim == 2 and min(value.shape) > 1:
            yield np.asfortranarray(value)
        dims = field.dims
        if value.size and isinstance(field, f.Array):
            yield from (filled(value, x) for x in out_of_range(field, value))
            if field.dtype is not bool and getattr(field, "ascending", False) and len(value) > 1:
                yield np.ascontiguousarray(value[::-1])
    for axis, dim in enumerate(dims):
        if (isinstance(dim, int) or shared.get(dim, 0) > 1) and value.shape[axis]:
            longer = sp.vstack([value, value[-1:]], "csr") if sp.issparse(value) and axis == 0 else None
            if not sp.issparse(value):
                longer = np.ascontiguousarray(np.concatenate([value, value.take([-1], axis)], axis))
            if longer is not None:
                yield longer


def out_of_range(field, value):
    if isinstance(field, f.Ids):
        yield from [field.least - 1] if value.dtype.kind == "i" else [255]
        return
    if value.dtype.kind == "f":
        yield from [np.inf] if field.floats == "finite" else []
        yield from [np.nan] if field.floats != "any" else []
    yield from [x for x in (field.above, field.below) if x is not None]
    yield from beyond(field) if value.dtype.kind in "fi" else []


def beyond(field):
    """Finite numbers outside of the range of a field, if it has one."""
    for bound, sign in ((field.least, -1), (field.most, 1)):
        if np.isfinite(bound):
            yield bound + sign * max(1, abs(bound))


def filled(value, x):
    out = value.copy()
    with np.errstate(all="ignore"):
        out.reshape(-1)[:1] = np.array([x]).astype(value.dtype)
    return out


def sizes_told(fields, state):
    """How many values of a state tell each size."""
    told = Counter()
    for field, path in leaves(fields, state):
        if at(state, path) is None:
            continue
        dims = [*getattr(field, "dims", ()), getattr(field, "n", None), getattr(field, "size", None)]
        told.update({dim for dim in dims if isinstance(dim, str)})
        if isinstance(field, f.Object):
            theirs = at(state, path).named_sizes()
            links = field.links if isinstance(field.links, dict) else {name: name for name in field.links}
            told.update(ours for name, ours in links.items() if name in theirs)
    return told


def error_of(cls, state):
    """What is said of a state that is not taken; None where it is."""
    try:
        cls.from_state(state)
    except (ValueError, TypeError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("kind", named(examples()))
def test_what_breaks_a_rule_is_refused(kind):
    tried = 0
    for part in [part for part in examples() if type(part).__name__ == kind]:
        state, cls = part.get_state(), type(part)
        shared = sizes_told(part.saved.fields, state)
        for field, path in leaves(part.saved.fields, state):
            good = at(state, path)
            bad = [] if good is None else breaches(field, good, shared)
            mutants = [changed(state, path, value) for value in bad]
            if not field.optional:
                mutants.append(without(state, path))
            for mutant in mutants:
                error = error_of(cls, mutant)
                assert error is not None, f"{'.'.join(path)} of {kind}: {at(mutant, path)!r:.80} was taken"
                assert "\n" not in error
                tried += 1
        for nothing in ([], "text", None, 3):
            assert error_of(cls, nothing) is not None
    assert tried or kind == "HalfThreshold"  # which saves nothing


@pytest.mark.parametrize("kind", named(examples()))
def test_what_is_saved_comes_back(kind):
    for part in [part for part in examples() if type(part).__name__ == kind]:
        state = part.get_state()
        for again in (type(part).from_state(state), pickle.loads(pickle.dumps(part)), copy.copy(part)):
            assert type(again) is type(part)
            assert same(again.get_state(), state)


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if sp.issparse(a):
        return a.shape == b.shape and (a != b).nnz == 0
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, Saved):
        return same(a.get_state(), b.get_state())
    return a == b or (a != a and b != b)


@dataclass
class Counted(Saved):
    counts: Annotated[np.ndarray, f.Array("", np.int64, ("L",))]
    best: Annotated[int, f.Integer("", most="L")]
    seen: int = 0


class Titled(Saved):
    counts: Annotated[np.ndarray, f.Array("", np.int64, ("L",))]
    saved: ClassVar[Spec] = Spec(f.Text("title"))


def test_fields_in_the_types_of_attributes_are_the_spec_or_come_before_its_own():
    assert Counted(np.arange(3), 2, seen=5).get_state().keys() == {"counts", "best"}
    assert Counted.from_state({"counts": np.arange(3), "best": 3}).seen == 0
    with pytest.raises(ValueError, match=r"best of Counted must be an integer in \[0, 3\], got 4"):
        Counted.from_state({"counts": np.arange(3), "best": 4})
    assert [field.name for field in Titled.saved.fields] == ["counts", "title"]


def test_every_class_of_a_saved_model_has_a_spec():
    pytest.importorskip("torch")  # of the models of `examples`
    assert all(isinstance(class_of(name).saved, Spec) for name in SAVED)
    own = {cls for cls in trust._REGISTERED.values() if cls.__module__.startswith("metarank.")}
    assert {cls.__name__ for cls in own if "saved" in vars(cls) and not inspect.isabstract(cls)} - set(
        named(examples())
    ) <= SEEN_ELSEWHERE
