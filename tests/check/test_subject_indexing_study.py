"""The study subject_indexing: the files that Annif reads, the order of its steps, the figures, the claims."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from studies import study

with study("bench"):
    import corpora
    from declared import Lines
    from studies import subject_indexing
    from systems import annif_project

A, B, C, D = (f"http://example.org/{letter}" for letter in "abcd")


@pytest.fixture
def folder(tmp_path):
    """Four subjects: d has no name, c and d no training record."""
    (tmp_path / "raw").write_text("raw")
    train = [(f"text number {i}", [A, B] if i % 2 else [A]) for i in range(50)]
    test = [("one", [A, C]), ("two", [B, D])]
    raw = corpora.Raw(train, test, {A: "apples", B: "bears", C: "cats"}, "en", [tmp_path / "raw"])
    described = corpora.write(raw, tmp_path)
    wanted = {"n": 50, "n_test": 2, "L": 4, "named": 3, "trained": 2}
    assert described.items() >= {**wanted, "gold": 4, "unseen": 2, "unseen_nameless": 1}.items()
    return tmp_path


def test_the_files_that_annif_reads(folder):
    names = "".join(f"<{uri}>\t{name}\n" for uri, name in zip((A, B, C, D), ("apples", "bears", "cats", "d")))
    assert (folder / "vocabulary.tsv").read_text() == names
    assert (folder / "names.tsv").read_text() == names.rsplit("\n", 2)[0] + "\n"
    assert (folder / "test.tsv").read_text() == f"one\t<{A}> <{C}>\ntwo\t<{B}> <{D}>\n"
    parts = {
        name: set((folder / f"{name}.tsv").open()) for name in ("sources", "ensembles", "learn", "choose")
    }
    for whole, one, other in (("train", "sources", "ensembles"), ("ensembles", "learn", "choose")):
        assert parts[one] | parts[other] == set((folder / f"{whole}.tsv").open())
        assert not parts[one] & parts[other]
        assert parts[other]


def test_figures_are_against_all_subjects(folder):
    # Annif numbers subjects in an order of its own. Record one: c, a; record two: a alone.
    found = {"data": [0.5, 0.9, 0.4], "indices": [2, 1, 2], "indptr": [0, 2, 3]}
    np.savez(folder / "out.npz", **found, uris=np.array([D, C, A, B]))
    labels, scores = annif_project.lists(folder, folder / "out.npz")
    assert labels.tolist() == [[2, 0, -1, -1], [0, -1, -1, -1]]
    np.savez(folder / "answers.npz", labels=labels, scores=scores)
    expected = {"nDCG@10": 0.5, "R@10": 0.5, "F1@5": (2 * 2 / (2 + 2) + 0) / 2, "unseen": 0.5}
    quality = subject_indexing.judged(folder, folder / "answers.npz")[""]
    assert quality == pytest.approx({**expected, "unseen, named": 1.0})


def test_ensembles_learn_from_records_that_their_sources_have_not_seen(folder, tmp_path, monkeypatch):
    steps = []

    def step(self, where, project, *command):
        steps.append((where, *(part.rpartition("/")[2] for part in command if not part.startswith("--"))))
        answer = {"annif": {"NDCG@10": 0.9 if project == "neural5" else 0.1}}
        if project == "neural":
            (self.place / where / "projects" / "neural").mkdir(parents=True)
            (self.place / where / "projects" / "neural" / "data.mdb").touch()
        return annif_project.Done(float(len(steps)), 1.0, "---\nsources=bonsai:0.7,mllm:0.3\n---", answer)

    monkeypatch.setattr(annif_project.Annif, "step", step)
    annif = annif_project.Annif(folder, tmp_path / "place", "en")
    taken, said = annif.trained("neural")
    assert said == "epochs=5"
    # The sources twice and the ensemble; neither the search for weights nor that for epochs.
    assert [steps[int(done.cpu) - 1][-1] for done in taken] == [
        *["train.tsv"] * 2,
        *["sources.tsv"] * 2,
        "ensembles.tsv",
    ]
    assert (tmp_path / "place" / "full" / "projects" / "neural").is_dir()
    written = annif.configuration("neural")
    assert "sources=bonsai:0.7,mllm:0.3\nepochs=5\n" in written
    assert written.count("analyzer=snowball(english)\n") == 2  # of both sources


def test_a_step_tells_its_cost_its_last_line_and_why_it_failed(tmp_path):
    done = annif_project.run([sys.executable, "-c", "print('a'); print('{\"b\": 1}')"], {})
    assert (done.answer, done.cpu > 0, done.memory > 1) == ({"b": 1}, True, True)
    with pytest.raises(RuntimeError, match="ended with 3: no such project"):
        annif_project.run([sys.executable, "-c", "import sys; print('no such project'); sys.exit(3)"], {})


def test_the_page_says_what_is_reached_beside_the_best_ensemble():
    def line(system, ndcg, train_s):
        quality = dict.fromkeys(subject_indexing.METRICS, ndcg)
        return {
            **{"set": "toy-subjects", "system": system.name, "quality": {"": quality}, "train_s": train_s},
            **{"batch_ms": train_s, "memory_mib": 1.0, "annif": {"NDCG@10": ndcg + 0.01, "F1@5": ndcg}},
        }

    of = {"n": 1, "n_test": 2, "L": 4, "named": 3, "trained": 2, "gold": 4}
    lines = [line(subject_indexing.SIMPLE, 0.4, 100.0), line(subject_indexing.OURS[0], 0.5, 50.0)]
    page = subject_indexing.page(Lines(lines, {"toy-subjects": {**of, "unseen": 1, "unseen_nameless": 0}}))
    assert "| toy, metarank | +25.0 % | +25.0 % | 0.50 | 0.50 | 0.50 | yes |" in page
    assert "differs by 1.00 in" in page
