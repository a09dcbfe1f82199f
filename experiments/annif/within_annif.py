"""Runs in the environment of Annif: its own commands, or the suggestions of a project for a corpus.

python within_annif.py annif COMMAND ...
python within_annif.py suggest PROJECT CORPUS OUT.npz

The backend of metarank is registered where a project needs it; all else is Annif as installed. `suggest`
keeps the hundred best subjects of each document, and prints the CPU seconds of the suggestions alone and what
Annif's own evaluation makes of them.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from itertools import islice

import numpy as np
import scipy.sparse as sp

LIMIT = 100
METRICS = ("NDCG@10", "F1@5")


def cpu() -> float:
    """Seconds of this process and of those it waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def command(arguments: list[str]) -> None:
    from annif.cli import cli

    sys.argv = ["annif", *arguments]
    cli()


def suggest(name: str, corpus: str, out: str) -> None:
    import annif
    import annif.eval
    import annif.registry
    from annif.corpus import DocumentFileTSV

    with annif.create_flask_app().app_context():
        project = annif.registry.get_project(name)
        project.initialize()
        subjects = project.subjects
        batches = list(DocumentFileTSV(corpus, subjects).doc_batches)
        # What is loaded or compiled by a first answer is not the price of a document.
        project.suggest(list(islice(batches[0], 2)))
        judge, parts, used = annif.eval.EvaluationBatch(subjects), [], 0.0
        for documents in batches:
            before = cpu()
            found = project.suggest(documents)
            used += cpu() - before
            found = found.filter(limit=LIMIT)
            judge.evaluate_many(found, [document.subject_set for document in documents])
            parts.append(sp.csr_matrix(found.array))
        scores = sp.vstack(parts).tocsr()
        uris = np.array([subject.uri for subject in subjects])
        np.savez_compressed(out, data=scores.data, indices=scores.indices, indptr=scores.indptr, uris=uris)
        print(json.dumps({"CPU s": used, "annif": judge.results(METRICS)}))


if __name__ == "__main__":
    if os.environ.get("METARANK_BACKEND"):
        from metarank.apps.annif import register

        register()
    if sys.argv[1] == "annif":
        command(sys.argv[2:])
    else:
        suggest(*sys.argv[2:])
