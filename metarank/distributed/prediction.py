"""Prediction on a cluster: any number of rows, part by part, in memory or to Parquet.

A row's answer depends on that row alone, so that the results equal local ones, to the byte.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dask
import fsspec
import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from metarank._util.files import whole_file
from metarank.data.block_encoder import BlocksEncoder
from metarank.data.dataset import Dataset
from metarank.distributed.partitions import Part, Partitions
from metarank.distributed.tasks import hold
from metarank.distributed.workers import QUIET, check_client, check_folder, reason, task_threads
from metarank.model.best_points import (
    Pairs,
    best_points,
    heads,
    points_ranking,
    probable_points,
    rows_of_labels,
)
from metarank.model.estimator import MetaRanker
from metarank.model.request import check_rows, encoded_request, given_to, read_request, words_in
from metarank.types.arrays import stacked
from metarank.types.blocks import Blocks, holds_blocks
from metarank.types.candidates import Candidates
from metarank.types.ranking import Ranking, check_k
from metarank.types.restrict import check_lists, check_shortlist
from metarank.types.view import Features
from metarank.types.word_rows import WordRows

if TYPE_CHECKING:
    from distributed import Client, Future

# Rows as a model reads them, and their words in order where it looks at these.
Encoded = tuple[Features, WordRows | None]

# Rows to a task, where the rows come from this process.
PART_ROWS = 4096


def rank(
    model: MetaRanker,
    X: Any,
    k: int = 10,
    *,
    client: Client | None = None,
    out: str | None = None,
    optimize: str | None = None,
    **options: Any,
) -> Ranking | list[str]:
    """The k best labels of each row: `MetaRanker.rank` on a cluster.

    Parameters
    ----------
    model : fitted MetaRanker
    X : as in `MetaRanker.rank`, or Partitions (see `read`), which workers read by themselves
    k : int
    client : distributed.Client or None
        None: the client in use.
    out : str, optional
        A folder (path or URL of fsspec) to which each part is written, ``part-00000.parquet`` and so on, with
        a record for each pair of a row and a label: ``row`` (its number over all parts, int64), ``rank``
        (from 1), ``label``, ``label_name`` where known, ``score``, ``without_evidence`` (see `Ranking`).
        Files appear complete or not at all. The folder must be empty or new.
    optimize : str, optional
        With `out`: only labels above the cut learned for this metric; see `MetaRanker.predict`.
    options : as for `MetaRanker.rank`
        What has an entry a row (`candidates`, `pair_features`, `exclude`, `allowed`) is cut with the rows.

    Returns
    -------
    Ranking, the same as ``model.rank(X, k)``; or with `out` the files written, in order of rows

    Raises
    ------
    ValueError, TypeError
        As `MetaRanker.rank`; or if `out` holds anything, or cannot be written to.
    """
    k = check_k(k)
    if out is None:
        if optimize is not None:
            raise ValueError("optimize goes with out: in memory use predict")
        return Ranking.concatenate(over_rows(model, "rank", X, client, (k,), options))
    client = check_client(client)
    _check_out(out)
    with _sent(client, model) as sent:
        if optimize is not None:
            model.thresholds_.check_metric(optimize)
        futures = [
            client.submit(_write_pairs, sent, rows, at.start, _file(out, i), k, optimize, own, pure=False)
            for i, (rows, at, own) in enumerate(parts_of(model, X, options))
        ]
        return list(client.gather(futures))


def rank_points(
    model: MetaRanker,
    X: Any,
    k: int = 10,
    *,
    client: Client | None = None,
    out: str | None = None,
    n_files: int = 8,
    **options: Any,
) -> Ranking | list[str]:
    """The k best rows for each label: `MetaRanker.rank_points` on a cluster.

    Probabilities are computed part by part. A model with ``labelwise=True`` ranks the rows of a label among
    one another: workers encode the parts, and one of them holds all encoded rows and answers.

    Parameters
    ----------
    model, X, client : as for `rank`
    k : int
    out : str, optional
        A folder for `n_files` Parquet files, each of a range of labels, with a record for each pair:
        ``label``, ``label_name`` where known, ``rank``, ``row``, ``probability`` (with ``labelwise=True``
        ``score``). Must be empty or new.
    n_files : int
        Number of ranges of labels, which are combined separately.
    options : `exclude`, `allowed`, `candidates`, `pair_features` as for `rank`

    Returns
    -------
    Ranking, the same as ``model.rank_points(X, k)``; or with `out` the files written, in order of labels

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of range, or `out` holds anything or cannot be written to.
    """
    k, n_files = check_k(k), check_k(n_files)
    client = check_client(client)
    if out is not None:
        _check_out(out)
    with _sent(client, model) as sent:
        bounds = np.linspace(0, model.n_labels_, n_files + 1).astype(np.int64)
        parts = list(parts_of(model, X, options))
        n = parts[-1][1].stop
        k, labelwise = min(k, max(1, n)), model.fitted_.point_ranker is not None
        if labelwise:
            rows_of_parts = [] if X is None else [rows for rows, _, _ in parts]
            encoded = [client.submit(_encoded, sent, rows, pure=False) for rows in rows_of_parts]
            best = [client.submit(_ranked_rows, sent, encoded, k, bounds, options, pure=False)]
        else:
            best = [
                client.submit(_best_rows, sent, rows, at.start, k, bounds, own, pure=False)
                for rows, at, own in parts
            ]
        ranges = []
        for i in range(n_files):
            pieces = [client.submit(_piece, own, i, pure=False) for own in best]
            size = int(bounds[i + 1] - bounds[i])
            ranges.append(client.submit(_merged_rows, pieces, size, k, pure=False))
        if out is None:
            found_rows, scores = map(np.concatenate, zip(*client.gather(ranges)))
            return points_ranking(found_rows, scores, n, model.fitted_)
        names = model.label_names_
        written = []
        for i, (first, last) in enumerate(pairwise(bounds)):
            called = None if names is None else names[int(first) : int(last)]
            found = ranges[i], int(first), called
            column = "score" if labelwise else "probability"
            written.append(client.submit(_write_rows, _file(out, i), *found, column, pure=False))
        return list(client.gather(written))


def over_rows(
    model: MetaRanker,
    method: str,
    X: Any,
    client: Client | None,
    args: Sequence[Any] = (),
    options: dict[str, Any] | None = None,
) -> list[Any]:
    """What a method of the model returns for each part of the rows, in order."""
    client = check_client(client)
    with _sent(client, model) as sent:
        futures = [
            client.submit(_asked, sent, method, rows, args, own, pure=False)
            for rows, _, own in parts_of(model, X, options or {})
        ]
        return list(client.gather(futures))


@contextmanager
def _sent(client: Client, model: MetaRanker) -> Iterator[Future]:
    """The model on the cluster: part of the graph, so that no loss of workers loses it."""
    if not isinstance(model, MetaRanker):
        raise TypeError(f"model must be a MetaRanker, got {type(model).__name__}")
    check_is_fitted(model, "ranker_")
    with dask.config.set(QUIET):
        yield client.submit(hold, model, pure=False)


def parts_of(
    model: MetaRanker, X: Any, options: dict[str, Any]
) -> Iterator[tuple[Any, range, dict[str, Any]]]:
    """Rows of each task, their numbers, and its options; rows of this process go with the graph."""
    fitted, options = model.fitted_, dict(options)
    check_rows(fitted, X)
    X = _readable(model, X)
    of_rows = None if X is None else _n_rows(X)
    given = given_to(fitted, of_rows, options.get("candidates"), options.get("pair_features"))
    n = given.n_rows if given is not None else _n_rows(X)
    if not fitted.given_sources and options.get("candidates") is not None:
        options["candidates"] = check_shortlist(options["candidates"], n, model.label_table_)
    for name in ("exclude", "allowed"):
        if options.get(name) is not None:
            options[name] = check_lists(options[name], n, model.label_table_, name)

    def own(at: range) -> dict[str, Any]:
        rows = np.arange(at.start, at.stop)
        out = {k: v.rows(rows) if isinstance(v, Candidates) else v for k, v in options.items()}
        return out if given is None else out | given[rows].as_arguments()

    if isinstance(X, Partitions):
        for part in X.parts:
            at = range(part.first_row, part.first_row + part.n_rows)
            yield part, at, own(at)
        return
    for start in range(0, max(n, 1), PART_ROWS):
        at = range(start, min(n, start + PART_ROWS))
        yield _taken(X, slice(at.start, at.stop)), at, own(at)


def _readable(model: MetaRanker, X: Any) -> Any:
    """Rows of which some can be taken: a dict or a data frame becomes the blocks of the model."""
    if isinstance(model.encoder_, BlocksEncoder) and holds_blocks(X):
        return model.encoder_.read(X)
    if isinstance(X, Mapping):
        model.encoder_.encode(X)  # which refuses it
    return X


def _n_rows(X: Any) -> int:
    if isinstance(X, (Dataset, Partitions)):
        return X.n_rows
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _taken(X: Any, rows: slice) -> Any:
    if X is None:
        return None
    if isinstance(X, (Dataset, Blocks)):
        return X.take(rows)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return sp.csr_matrix(X)[rows] if sp.issparse(X) else X[rows]


def _ready(model: MetaRanker, rows: Any) -> tuple[MetaRanker, Any]:
    """The model with the threads of a task, and the rows, read if need be."""
    out = object.__new__(MetaRanker)
    out.__dict__.update(model.__dict__, n_jobs=task_threads(model.n_jobs))
    return out, rows.load() if isinstance(rows, Part) else rows


def _asked(model: MetaRanker, method: str, rows: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
    model, rows = _ready(model, rows)
    return getattr(model, method)(rows, *args, **options)


def _write_pairs(
    model: MetaRanker, rows: Any, first: int, url: str, k: int, optimize: str | None, options: dict[str, Any]
) -> str:
    """A file of the k best labels of some rows."""
    model, rows = _ready(model, rows)
    ranking = model.rank(rows, k, **options)
    row, place = np.nonzero(ranking.labels >= 0)
    label = ranking.labels[row, place]
    if optimize is not None:
        whole = ("propensity_weight", "objective_weights")  # which order lists and do not cut them
        own = {name: value for name, value in options.items() if name not in whole}
        above = model.predict(rows, optimize, **own).tocsr()
        kept = np.asarray(above[row, label]).ravel() > 0
        row, place, label = row[kept], place[kept], label[kept]
    columns: dict[str, Any] = {
        "row": row.astype(np.int64) + first,
        "rank": (place + 1).astype(np.int32),
        "label": label.astype(np.int32),
    }
    if model.label_names_ is not None:
        columns["label_name"] = [model.label_names_[i] for i in label]
    columns["score"] = ranking.scores[row, place]
    columns["without_evidence"] = ranking.without_evidence[row]
    return _write(url, columns)


def _best_rows(
    model: MetaRanker, rows: Any, first: int, k: int, bounds: np.ndarray, options: dict[str, Any]
) -> list[Pairs]:
    """(label within its range, row, probability) of each label's k best of some rows, range by range."""
    model, rows = _ready(model, rows)
    parts = probable_points(model.answering(), read_request(model.fitted_, rows, **options))
    label, row, score = map(np.concatenate, zip(*parts))
    return _by_range(*heads(label, row + first, score, k), bounds)


def _encoded(model: MetaRanker, rows: Any) -> Encoded:
    model, rows = _ready(model, rows)
    return model.encoder_.encode(rows), words_in(model.fitted_, rows)


def _ranked_rows(
    model: MetaRanker, encoded: list[Encoded], k: int, bounds: np.ndarray, options: dict[str, Any]
) -> list[Pairs]:
    """As `_best_rows`, of all rows at once by the ranker of points."""
    model, _ = _ready(model, None)
    X = stacked([rows for rows, _ in encoded]) if encoded else None
    words = [of for _, of in encoded if of is not None]
    in_order = WordRows.joined(words) if words else None
    request = encoded_request(model.fitted_, X, words=in_order, **options)
    found = best_points(model.answering(), request, k)
    label, place = np.nonzero(found.labels >= 0)
    return _by_range(label, found.labels[label, place].astype(np.int64), found.scores[label, place], bounds)


def _by_range(label: np.ndarray, row: np.ndarray, score: np.ndarray, bounds: np.ndarray) -> list[Pairs]:
    at = np.searchsorted(label, bounds)
    return [(label[a:b] - bounds[i], row[a:b], score[a:b]) for i, (a, b) in enumerate(pairwise(at))]


def _piece(pieces: list[Any], i: int) -> Any:
    return pieces[i]


def _merged_rows(pieces: list[Pairs], n_labels: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """`rows_of_labels` of one range of labels from all parts."""
    label, row, score = (np.concatenate([piece[i] for piece in pieces]) for i in range(3))
    return rows_of_labels(label, row, score, n_labels, k)


def _write_rows(
    url: str, found: tuple[np.ndarray, np.ndarray], first: int, names: list[str] | None, column: str
) -> str:
    """A file of the best rows of a range of labels."""
    rows, scores = found
    label, place = np.nonzero(rows >= 0)
    columns: dict[str, Any] = {"label": (label + first).astype(np.int32)}
    if names is not None:
        columns["label_name"] = [names[i] for i in label]
    columns |= {
        "rank": (place + 1).astype(np.int32),
        "row": rows[label, place],
        column: scores[label, place],
    }
    return _write(url, columns)


def _check_out(out: Any) -> None:
    """Refuse a folder that holds anything: parts of an earlier, longer run would be read with those of this.

    Raises
    ------
    TypeError, ValueError
        If `out` is no path or URL, holds anything, or cannot be written to; the parameter is named.
    """
    if not isinstance(out, (str, os.PathLike)):
        raise TypeError(f"out must be a path or URL of a folder, got {out!r:.80}")
    if not os.fspath(out):
        raise ValueError("out must be a path or URL of a folder, got ''")
    try:
        fs, path = fsspec.core.url_to_fs(os.fspath(out))
        fs.invalidate_cache()
        if fs.isfile(path):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        held = fs.ls(path, detail=False) if fs.exists(path) else []
    except (OSError, ImportError, ValueError) as error:
        raise ValueError(
            f"out must be a folder that can be written to, got {os.fspath(out)!r}: {reason(error)}"
        ) from None
    # Some object stores list a folder among what it holds.
    names = sorted(name.rstrip("/") for name in held if name.rstrip("/") != path.rstrip("/"))
    if names:
        raise ValueError(
            f"out must be an empty or new folder, {os.fspath(out)!r} holds {names[0].rpartition('/')[2]!r}"
        )
    if _is_local(fs):
        check_folder(path, "out")


def _is_local(fs: Any) -> bool:
    return "file" in (fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,))


def _file(out: str | os.PathLike[str], number: int) -> str:
    return f"{os.fspath(out).rstrip('/')}/part-{number:05d}.parquet"


def _write(url: str, columns: dict[str, Any]) -> str:
    """A Parquet file that appears whole or not at all; object stores see to that themselves."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fs, path = fsspec.core.url_to_fs(url)
    fs.makedirs(fs._parent(path), exist_ok=True)
    with whole_file(path, "wb") if _is_local(fs) else fs.open(path, "wb") as f:
        # Of no names nothing tells that they are texts.
        named = {k: pa.array(v, pa.string()) if isinstance(v, list) else v for k, v in columns.items()}
        pq.write_table(pa.table(named), f)
    return url
