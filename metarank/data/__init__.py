"""Data sets: readers, writers, generators and splits."""

from metarank.data.blocks import Blocks
from metarank.data.corpus import read_corpus
from metarank.data.dataset import Dataset, from_texts
from metarank.data.frames import from_frame
from metarank.data.label_files import read_labels
from metarank.data.named_sets import DatasetRecord, get, list_datasets, load_named
from metarank.data.pair_files import read_candidates
from metarank.data.parquet import to_parquet
from metarank.data.pydocs import load_pydocs
from metarank.data.readers import load
from metarank.data.synthetic import make_extreme, make_multilabel
from metarank.data.vectorizer import TextVectorizer
from metarank.data.vocabulary import read_vocabulary
from metarank.data.xc import parse_xc, write_xc
from metarank.types.label_descriptions import LabelDescriptions

__all__ = [
    "Blocks",
    "Dataset",
    "DatasetRecord",
    "LabelDescriptions",
    "TextVectorizer",
    "from_frame",
    "from_texts",
    "get",
    "list_datasets",
    "load",
    "load_named",
    "load_pydocs",
    "make_extreme",
    "make_multilabel",
    "parse_xc",
    "read_candidates",
    "read_corpus",
    "read_labels",
    "read_vocabulary",
    "to_parquet",
    "write_xc",
]
