"""`InputReader`: instances and labels of requests as the rows and ids that a model takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from metarank.apps.model_blocks import needed_blocks
from metarank.apps.serve.block_instances import BlockReader
from metarank.apps.serve.errors import invalid, refusing
from metarank.apps.serve.options import ServeOptions
from metarank.data.encoder import InputEncoder
from metarank.model.estimator import MetaRanker
from metarank.types.blocks import Blocks
from metarank.types.candidates import Candidates
from metarank.types.checks import check_features
from metarank.types.given import Given, read_given
from metarank.types.label_table import LabelTable
from metarank.types.restrict import check_lists

Rows: TypeAlias = "list[str] | np.ndarray | sp.csr_matrix | Blocks"


class InputReader:
    """What a model takes, and how instances in JSON become that.

    Parameters
    ----------
    model : fitted MetaRanker
    options : ServeOptions
    """

    def __init__(self, model: MetaRanker, options: ServeOptions) -> None:
        if model.fitted_.given_sources and model.n_features_in_ == 0:
            raise ValueError("the model must take instances to be served: it was fitted with X=None")
        self.options = options
        self.encoder: InputEncoder = model.encoder_
        self.n_features: int = model.n_features_in_
        self.labels: LabelTable = model.label_table_
        self.check_given: Callable[[Given | None], None] = model.fitted_.check_given
        parts = needed_blocks(self.encoder)
        own = [part for part in getattr(self.encoder, "parts", ()) if not part.is_joint]
        optional = [part for part in own if part not in parts]
        self.blocks: BlockReader | None = BlockReader(parts, optional, options.max_text) if parts else None

    @property
    def kind(self) -> Literal["text", "features", "blocks"]:
        """What an instance is: a text, values of features, or blocks."""
        if self.blocks is not None:
            return "blocks"
        return "text" if self.encoder.vectorizer is not None else "features"

    @property
    def feature_names(self) -> list[str] | None:
        """Names that an object {feature: value} may use; else its keys are the numbers of columns."""
        return self.encoder.names or self.encoder.words

    @cached_property
    def _column(self) -> dict[str, int]:
        return {name: j for j, name in reversed(list(enumerate(self.feature_names or [])))}

    def rows(self, instances: Sequence[Any], field: str) -> Rows:
        """The instances of a request: texts, or checked features (n, d) as the model takes them.

        Raises
        ------
        Refused
            422 where an instance is not of the model's kind, too long, of another width, has a feature that
            the model does not know, or a value that is NaN, infinite or too large for 32 bits.
        """
        most = self.options.max_batch
        if len(instances) > most:
            raise invalid(field, f"{field} must hold at most {most} instances, got {len(instances)}")
        if self.blocks is not None:
            return self.blocks.read(instances, field)
        if self.kind == "text":
            return self._texts(instances, field)
        kinds = {type(instance) for instance in instances}
        if str in kinds:
            rule = "must hold numeric features, since this model was trained on numbers"
            raise invalid(field, f"{field} {rule}")
        if len(kinds) > 1:
            raise invalid(field, f"{field} must hold objects or lists, not both")
        read = self._sparse if dict in kinds else self._dense
        rows, layout = read(instances, field), self.encoder.layout
        with refusing(field):
            return check_features(
                rows, n_features=self.n_features, layout=layout, name=field, estimator="this model"
            )

    def _texts(self, instances: Sequence[Any], field: str) -> list[str]:
        for i, text in enumerate(instances):
            if not isinstance(text, str):
                raise invalid(field, f"{_at(field, i)} must be a text, since this model was trained on text")
            most = self.options.max_text
            if len(text) > most:
                said = f"{_at(field, i)} must have at most {most} characters, got {len(text)}"
                raise invalid(field, said)
        return list(instances)

    def _dense(self, instances: Sequence[list[float]], field: str) -> np.ndarray:
        for i, values in enumerate(instances):
            if len(values) != self.n_features:
                raise invalid(field, f"{_at(field, i)} must have {self.n_features} values, got {len(values)}")
        return np.array(instances, np.float64)

    def _sparse(self, instances: Sequence[dict[str, float]], field: str) -> sp.csr_matrix:
        columns: list[int] = []
        indptr = [0]
        for i, values in enumerate(instances):
            own = [self._column_of(name, _at(field, i), field) for name in values]
            wrong = next((name for name, v in values.items() if not isinstance(v, int | float)), None)
            if wrong is not None:
                raise invalid(field, f"{_at(field, i)}[{wrong[:60]!r}] must be a valid number")
            if len(set(own)) < len(own):
                raise invalid(field, f"{_at(field, i)} must name each feature once")
            columns += own
            indptr.append(len(columns))
        data = np.array([v for values in instances for v in values.values()], np.float64)
        shape = (len(instances), self.n_features)
        return sp.csr_matrix((data, np.array(columns, np.int32), indptr), shape=shape)

    def _column_of(self, name: str, where: str, field: str) -> int:
        column = self._column.get(name)
        if column is not None:
            return column
        if name.isascii() and name.isdigit() and len(name) < 12 and int(name) < self.n_features:
            return int(name)
        known = "names of features" if self._column else f"numbers of features in [0, {self.n_features})"
        raise invalid(field, f"{where} must have {known} for keys, got {name[:60]!r}")

    def label(self, label: int | str, field: str) -> int:
        """The id of a label by its id or name.

        Raises
        ------
        Refused
            422 where the model has no such label, no more, or several of that name.
        """
        with refusing(field):
            return self.labels.id_of(label, field)

    def lists(self, labels: Sequence[Any], n_rows: int, field: str) -> Candidates | np.ndarray:
        """Labels of a field that takes one list for all instances, or one list for each of them.

        Returns
        -------
        int32 array (m,) ascending, or Candidates of the rows
        """
        if labels and isinstance(labels[0], list) and len(labels) != n_rows:
            raise invalid(
                field, f"{field} must be one list of labels, or {n_rows}, one an instance, got {len(labels)}"
            )
        with refusing(field):
            return check_lists(labels, n_rows, self.labels, field)

    def pairs(self, request: Any, n_rows: int) -> dict[str, dict[str, sp.csr_matrix]]:
        """The scored candidates and the features of pairs of a request, as the model's methods take them.

        Raises
        ------
        Refused
            422 where a source of the fit is missing or another is given, a label is none of the model, or a
            score no finite number.
        """
        given = {"candidates": request.candidates, "pair_features": request.pair_features}
        of_one = getattr(request, "instances", None) is None
        read: dict[str, Any] = {
            field: None if of is None else {name: [pairs] if of_one else pairs for name, pairs in of.items()}
            for field, of in given.items()
        }
        field = next((field for field in given if given[field] is not None), "candidates")
        with refusing(field):
            found = read_given(read["candidates"], read["pair_features"], n_rows, self.labels)
            self.check_given(found)
        return {} if found is None else found.as_arguments()


def _at(field: str, i: int) -> str:
    """How an instance is called in a message."""
    return f"{field}[{i}]" if field == "instances" else field
