"""Data sets: reading, writing, making and splitting them."""

from metarank.data.arff import read_arff
from metarank.data.dataset import Dataset
from metarank.data.reading import load
from metarank.data.registry import DatasetRecord, get, list_datasets, load_named
from metarank.data.splits import stratified_folds, stratified_split
from metarank.data.synthetic import make_extreme, make_multilabel
from metarank.data.xc import parse_xc, write_svmlight, write_xc

__all__ = [
    "Dataset",
    "DatasetRecord",
    "get",
    "list_datasets",
    "load",
    "load_named",
    "make_extreme",
    "make_multilabel",
    "parse_xc",
    "read_arff",
    "stratified_folds",
    "stratified_split",
    "write_svmlight",
    "write_xc",
]
