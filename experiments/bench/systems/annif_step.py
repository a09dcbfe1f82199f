"""A step in the environment of Annif: one of its own commands, or the suggestions of a project for a corpus.

annif_step.py command COMMAND ...
annif_step.py suggest PROJECT CORPUS OUT.npz

The backend of metarank is registered where a project needs it; all else is Annif as installed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import scipy.sparse as sp

LIMIT = 100
METRICS = ("NDCG@10", "F1@5")


def command(*arguments: str) -> None:
    from annif.cli import cli

    sys.argv = ["annif", *arguments]
    cli()


def suggest(name: str, corpus: str, out: str) -> None:
    """Keep the hundred best subjects of each document; print the CPU seconds of the suggestions alone, and
    what Annif's own evaluation makes of them."""
    import annif
    import annif.eval
    import annif.registry
    from annif.corpus import DocumentFileTSV

    with annif.create_flask_app().app_context():
        project = annif.registry.get_project(name)
        project.initialize()
        batches = list(DocumentFileTSV(corpus, project.subjects).doc_batches)
        # What is loaded or compiled by a first answer is not the price of a document.
        project.suggest(list(islice(batches[0], 2)))
        judge, parts, used = annif.eval.EvaluationBatch(project.subjects), [], 0.0
        for documents in batches:
            before = cpu_seconds()
            found = project.suggest(documents)
            used += cpu_seconds() - before
            found = found.filter(limit=LIMIT)
            judge.evaluate_many(found, [document.subject_set for document in documents])
            parts.append(sp.csr_matrix(found.array))
        scores = sp.vstack(parts).tocsr()
        uris = np.array([subject.uri for subject in project.subjects])
        np.savez_compressed(out, data=scores.data, indices=scores.indices, indptr=scores.indptr, uris=uris)
        print(json.dumps({"CPU s": used, "annif": judge.results(METRICS)}))


def cpu_seconds() -> float:
    """Of this process and of those that it waited for."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


if __name__ == "__main__":
    # Files of this folder are called as the packages that they use.
    sys.path.remove(str(Path(__file__).parent))
    if "backend=metarank" in Path(os.environ["ANNIF_PROJECTS"]).read_text():
        from metarank.apps.annif import register

        register()
    {"command": command, "suggest": suggest}[sys.argv[1]](*sys.argv[2:])
