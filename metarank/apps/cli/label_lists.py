"""Files of label lists: line i holds the labels of row i, ids or names, separated by commas."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from metarank.types.label_table import LabelTable

FORMAT = (
    "text file, line i = labels of row i, ids or names separated by commas; "
    'a name with a comma stands in "quotes"; an empty line means no label'
)


def read_label_lists(
    path: str, table: LabelTable, n_rows: int, *, option: str, one_for_all: bool = False
) -> sp.csr_matrix:
    """The labels of each row from a file, CSR (n, L) of ones.

    A name of the model's labels is read as such even if it is a number; with `one_for_all` a file of a single
    line holds for every row.

    Raises
    ------
    ValueError
        If lines are not as many as rows, or hold what is no label of the model, or the name of several;
        option and line are named.
    OSError
        If the file cannot be read.
    """
    from metarank.data.guard import check_present

    lists: list[list[int]] = []
    check_present(path)
    try:
        with open(path, encoding="utf-8-sig") as f:
            for number, line in enumerate(f, 1):
                words = next(csv.reader([line.strip()], skipinitialspace=True, strict=True), [])
                where = f"{option}, line {number}"
                lists.append([table.id_of_text(word.strip(), where) for word in words])
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{option}, line {len(lists) + 1}: {error}") from None
    if one_for_all and len(lists) == 1:
        lists = lists * n_rows
    if len(lists) != n_rows:
        raise ValueError(f"{option} must have {n_rows} lines, one a row, got {len(lists)} in {path}")
    row = np.repeat(np.arange(n_rows), [len(labels) for labels in lists])
    label = np.fromiter((label for labels in lists for label in labels), np.int64, len(row))
    return sp.csr_matrix((np.ones(len(row), np.float32), (row, label)), shape=(n_rows, table.n_labels))
