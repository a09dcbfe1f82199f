"""Data sets: reading, writing, making and splitting them."""

from metarank.data.dataset import Dataset
from metarank.data.reading import load
from metarank.data.xc import parse_xc, write_svmlight, write_xc

__all__ = [
    "Dataset",
    "load",
    "parse_xc",
    "write_svmlight",
    "write_xc",
]
