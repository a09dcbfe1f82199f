"""Training documents; the backend `metarank` keeps them, for ``annif train --cached`` and `learn`."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank._util.files import whole_file
from metarank.types.label_descriptions import LabelDescriptions


class Documents(NamedTuple):
    """Words of n documents as texts, and the URIs of their subjects."""

    texts: list[str]
    subjects: list[list[str]]

    @classmethod
    def read(cls, path: str) -> Documents:
        """Those that `write` wrote. OSError if there is no such file."""
        with open(path, encoding="utf-8", newline="\n") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        return cls([text for text, _ in lines], [uris.split(" ") for _, uris in lines])

    def write(self, path: str) -> None:
        """A line per document, as Annif's TSV corpora are: words, a tab, URIs. Completely or not at all."""
        with whole_file(path) as file:
            file.writelines(f"{text}\t{' '.join(uris)}\n" for text, uris in zip(*self))

    def with_frequent_words(self, least: int) -> list[str]:
        """The texts without the words that fewer than `least` of them hold."""
        if least <= 1:
            return self.texts
        counts = Counter(word for text in self.texts for word in set(text.split(" ")))
        return [" ".join(word for word in text.split(" ") if counts[word] >= least) for text in self.texts]

    def relevances(self, table: LabelDescriptions) -> sp.csr_matrix:
        """CSR (n, L) of ones; subjects that the table lacks are left out."""
        number = {uri: label for label, uri in enumerate(table.ids)}
        labels = [[number[uri] for uri in uris if uri in number] for uris in self.subjects]
        indptr = np.cumsum([0, *map(len, labels)])
        indices = np.array([label for row in labels for label in row], np.int64)
        shape = (len(labels), len(table))
        return sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape)


def subject_uris(project: Any, doc: Any) -> list[str]:
    """The URIs of a document's subjects that may be suggested, in the order of their ids."""
    uris = []
    for number in sorted(doc.subject_set):
        try:
            uris.append(project.subjects[number].uri)
        except IndexError:  # deprecated or excluded
            continue
    return uris
