"""Data sets: readers, writers, generators and splits."""

from metarank.data.arff import read_arff
from metarank.data.corpus import read_corpus
from metarank.data.dataset import Dataset
from metarank.data.frames import from_frame, read_parquet, to_parquet
from metarank.data.label_files import read_labels
from metarank.data.named_sets import DatasetRecord, get, list_datasets, load_named
from metarank.data.pair_files import read_candidates
from metarank.data.pydocs import load_pydocs
from metarank.data.readers import load
from metarank.data.splits import stratified_folds, stratified_split
from metarank.data.synthetic import make_extreme, make_multilabel
from metarank.data.text import from_texts, read_table
from metarank.data.vectorizer import TextVectorizer
from metarank.data.vocabulary import read_vocabulary
from metarank.data.xc import parse_xc, write_svmlight, write_xc
from metarank.types.blocks import Block, Blocks
from metarank.types.label_descriptions import LabelDescriptions

__all__ = [
    "Block",
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
    "read_arff",
    "read_candidates",
    "read_corpus",
    "read_labels",
    "read_parquet",
    "read_table",
    "read_vocabulary",
    "stratified_folds",
    "stratified_split",
    "to_parquet",
    "write_svmlight",
    "write_xc",
]
