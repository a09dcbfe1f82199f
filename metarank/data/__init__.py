"""Data sets: readers, writers, generators and splits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metarank._util.modules import imported_when_used

if TYPE_CHECKING:  # what type checkers know by its definition
    from collections.abc import Callable

    from metarank.data.blocks import Blocks as Blocks
    from metarank.data.corpus import read_corpus as read_corpus
    from metarank.data.dataset import Dataset as Dataset
    from metarank.data.dataset import from_texts as from_texts
    from metarank.data.frames import from_frame as from_frame
    from metarank.data.label_files import read_labels as read_labels
    from metarank.data.named_sets import DatasetRecord as DatasetRecord
    from metarank.data.named_sets import get as get
    from metarank.data.named_sets import list_datasets as list_datasets
    from metarank.data.named_sets import load_named as load_named
    from metarank.data.pair_files import read_candidates as read_candidates
    from metarank.data.parquet import to_parquet as to_parquet
    from metarank.data.pydocs import load_pydocs as load_pydocs
    from metarank.data.readers import load as load
    from metarank.data.synthetic import make_extreme as make_extreme
    from metarank.data.synthetic import make_multilabel as make_multilabel
    from metarank.data.vectorizer import TextVectorizer as TextVectorizer
    from metarank.data.vocabulary import read_vocabulary as read_vocabulary
    from metarank.data.xc import parse_xc as parse_xc
    from metarank.data.xc import write_xc as write_xc
    from metarank.types.label_descriptions import LabelDescriptions as LabelDescriptions

# Names are imported when first used: a model needs no reader of files.
_NAMES = {
    "data.blocks": ["Blocks"],
    "data.corpus": ["read_corpus"],
    "data.dataset": ["Dataset", "from_texts"],
    "data.frames": ["from_frame"],
    "data.label_files": ["read_labels"],
    "data.named_sets": ["DatasetRecord", "get", "list_datasets", "load_named"],
    "data.pair_files": ["read_candidates"],
    "data.parquet": ["to_parquet"],
    "data.pydocs": ["load_pydocs"],
    "data.readers": ["load"],
    "data.synthetic": ["make_extreme", "make_multilabel"],
    "data.vectorizer": ["TextVectorizer"],
    "data.vocabulary": ["read_vocabulary"],
    "data.xc": ["parse_xc", "write_xc"],
    "types.label_descriptions": ["LabelDescriptions"],
}
_HOME = {name: f"metarank.{module}" for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME)

__getattr__: Callable[[str], Any] = imported_when_used(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
