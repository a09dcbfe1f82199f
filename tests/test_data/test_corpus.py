"""Corpora: TSV, CSV, JSON lines and folders, as Annif documents them."""

import gzip
import json
import lzma
import os
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from metarank import data
from metarank.apps.cli import main
from metarank.data import LabelDescriptions, read_corpus, read_vocabulary
from metarank.data.corpus import is_corpus_folder, is_tsv

SEA, SUN = "http://x.org/sea", "http://x.org/sun"
TSV = 'a "quoted\ttext\n'.replace("\ttext", f"\t<{SEA}> {SUN}") + f"of 'the' sun\t<{SUN}>\n"
CSV = f'text,subject_uris\n"a ""quoted",<{SEA}> {SUN}\nof \'the\' sun,{SUN}\n'
JSONL = "\n".join(
    json.dumps({"text": text, "subjects": [{"uri": uri} for uri in uris]})
    for text, uris in (('a "quoted', [SEA, SUN]), ("of 'the' sun", [SUN]))
)
VOCABULARY = LabelDescriptions(ids=["http://x.org/moon", SUN, SEA], names=["moon", "sun", "sea"])


def folder_of(path: Path) -> Path:
    path.mkdir()
    (path / "b.txt").write_text("of 'the' sun")
    (path / "b.key").write_text("sun\n")
    (path / "a.txt").write_text('\ufeffa "quoted', encoding="utf-8")
    (path / "a.tsv").write_text(f"<{SEA}>\tsea\n<{SUN}>\tsun\n")
    (path / "a.key").write_text("moon\n")  # the .tsv goes before
    return path


@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.tsv", TSV),
        ("c.txt", TSV),
        ("c.tsv", "\ufeff" + TSV.replace("\n", "\r\n")),
        ("c.csv", CSV),
        ("c.jsonl", JSONL),
    ],
)
def test_forms_agree(tmp_path, name, text, packed):
    path = tmp_path / f"{name}{packed}"
    path.write_bytes({"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[packed](text.encode()))
    for corpus in (read_corpus(path), data.load(path)):
        assert corpus.texts == ['a "quoted', "of 'the' sun"]
        assert corpus.label_names == [SEA, SUN]
        assert corpus.Y.toarray().tolist() == [[1, 1], [0, 1]]
        assert corpus.name == "c"


def test_a_folder_of_documents(tmp_path):
    folder = folder_of(tmp_path / "docs")
    corpus = read_corpus(folder, VOCABULARY)
    assert corpus.texts == ['a "quoted', "of 'the' sun"]
    assert corpus.Y.toarray().tolist() == [[0, 1, 1], [0, 1, 0]]
    assert data.load(folder).label_names == [SEA, SUN, "sun"]
    (folder / "c.json").write_text(json.dumps({"text": "night", "subjects": [{"label": "moon"}]}))
    (folder / "d.txt").write_text("nothing")
    assert read_corpus(folder, VOCABULARY).Y.sum(axis=1).ravel().tolist() == [[2, 1, 0, 1]]


def test_y_is_over_all_labels_of_the_vocabulary(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_text(TSV + "more\t<http://x.org/new> <http://x.org/new>\nnone\t\nno tab\n")
    with pytest.warns(UserWarning, match="the table of labels lacks: 'http://x.org/new'") as told:
        corpus = read_corpus(path, VOCABULARY)
    assert len(told) == 1
    assert corpus.labels.ids == [*VOCABULARY.ids, "http://x.org/new"]
    assert corpus.labels.names == ["moon", "sun", "sea", ""]
    assert corpus.label_names == ["moon", "sun", "sea", "http://x.org/new"]
    assert corpus.Y.toarray().tolist() == [[0, 1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0] * 4, [0] * 4]


def test_texts_without_subjects(tmp_path):
    path = tmp_path / "c.txt"
    path.write_text("one\ntwo\n")
    assert read_corpus(path).n_labels == 0
    assert read_corpus(path, VOCABULARY).Y.shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "text", "options", "said"),
    [
        ("c.tsv", "", {}, "c.tsv: the corpus is empty"),
        ("c.tsv", "\n \n", {}, "c.tsv: the corpus is empty"),
        ("c.csv", "text,subject_uris\n", {}, "c.csv: the corpus is empty"),
        ("c.csv", "body,labels\na,b\n", {}, "must have a column 'text'"),
        ("c.csv", 'text,subject_uris\n"a,b\n', {}, "c.csv: the record at line 2"),
        ("c.jsonl", '{"text": "a"}\n{"text": \n', {}, "c.jsonl: line 2 is not JSON"),
        ("c.jsonl", '{"text": 1}\n', {}, "texts must hold a text per row, got 1"),
        ("c.jsonl", '{"text": "a", "subjects": ["b"]}\n', {}, "line 1: subjects must be a list of objects"),
        ("c.tsv", "a\t<http://y.org>\n", {"vocabulary": VOCABULARY}, "labels must have those of Y"),
    ],
)
def test_bad_corpora_are_named(tmp_path, name, text, options, said):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_corpus(path, **options)


def test_a_document_of_50_mb(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_text("the sun and the sea " * 2_500_000 + f"\t<{SEA}>\n")
    started = time.monotonic()
    corpus = read_corpus(path)
    assert len(corpus.texts[0]) == 50_000_000
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    "text", ["2 3 2\n1 0:0.5 2:1\n0,1 1:2\n", "title\tlabels\na b\tc d\n", '{"text": "a", "labels": ["b"]}']
)
def test_other_files_are_no_corpora(tmp_path, text):
    assert not is_tsv(text.encode())
    assert not is_corpus_folder(tmp_path)


def test_from_corpus_to_suggestions(tmp_path, capsys):
    rng = np.random.default_rng(0)
    words = {"sea": "waves salt ship", "sun": "light heat day", "moon": "night tide dark"}
    uris = {name: uri for uri, name in zip(VOCABULARY.ids, VOCABULARY.names)}
    lines = []
    for _ in range(60):
        name = list(words)[rng.integers(3)]
        lines.append(f"{' '.join(rng.choice(words[name].split(), 2))}\t<{uris[name]}>")
    corpus, vocabulary, model = (str(tmp_path / name) for name in ("c.tsv", "v.tsv", "model"))
    Path(corpus).write_text("\n".join([*lines, "nothing\t"]))
    Path(vocabulary).write_text(
        "".join(f"<{uri}>\t{name}\n" for name, uri in uris.items()) + "<http://x.org/salt>\tsalt\n"
    )
    train = ["train", corpus, "--vocab", vocabulary, "--model", model]
    main([*train, "--jobs", "1", "--effort", "low", "--quiet"])
    assert "left out 1 rows without labels" in capsys.readouterr().err
    Path(tmp_path / "t.txt").write_text(f"waves ship\t<{SEA}>\nheat of day\t<{SUN}>\n")
    test = str(tmp_path / "t.txt")
    main(["predict", model, test, "--top", "1", "--format", "jsonl", "--jobs", "1"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["labels"][0]["name"] for row in rows] == ["sea", "sun"]
    main(["evaluate", model, test, "--jobs", "1"])
    assert "P@1" in capsys.readouterr().out


ARCHAEOLOGY = Path(os.environ.get("METARANK_DATA", "/none")) / "annif" / "archaeology"
needs_data = pytest.mark.skipif(not ARCHAEOLOGY.is_dir(), reason="METARANK_DATA has no annif/archaeology")


@needs_data
@pytest.mark.filterwarnings("ignore:labels of Y that the table of labels lacks")
def test_the_archaeology_corpora_are_one():
    vocabulary = read_vocabulary(ARCHAEOLOGY / "subjects.csv", "fi")
    found = [read_corpus(ARCHAEOLOGY / f"documents.{e}", vocabulary) for e in ("tsv", "csv", "jsonl")]
    assert found[0].n_rows == 6404
    for other in found[1:]:
        assert [t.strip() for t in other.texts] == [t.strip() for t in found[0].texts]
        assert (other.Y != found[0].Y).nnz == 0


ANNIF = """
from annif.corpus import *
from annif.vocab.subject_file import VocabFileCSV
from annif.vocab.subject_index import SubjectIndexFile
index = SubjectIndexFile()
index.load_subjects(VocabFileCSV({vocabulary!r}))
for document in {reader}.documents:
    uris = sorted(index[s].uri for s in document.subject_set)
    print(len(document.text.strip()), *uris)
"""


@needs_data
@pytest.mark.skipif("ANNIF_PYTHON" not in os.environ, reason="ANNIF_PYTHON names no Python with Annif")
@pytest.mark.parametrize(
    ("file", "reader"),
    [
        ("documents.tsv", "DocumentFileTSV({path!r}, index)"),
        ("documents.csv", "DocumentFileCSV({path!r}, index)"),
        ("documents.jsonl", "DocumentFileJSONL({path!r}, index, 'fi', False)"),
        ("fulltext", "DocumentDirectory({path!r}, index, 'fi', require_subjects=True)"),
    ],
)
@pytest.mark.filterwarnings("ignore:labels of Y that the table of labels lacks")
def test_annif_reads_the_same(tmp_path, file, reader):
    vocabulary = str(ARCHAEOLOGY / "subjects.csv")
    code = ANNIF.format(vocabulary=vocabulary, reader=reader.format(path=str(ARCHAEOLOGY / file)))
    done = subprocess.run(
        [os.environ["ANNIF_PYTHON"], "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    known = read_vocabulary(vocabulary, "fi")
    corpus = read_corpus(ARCHAEOLOGY / file, known)
    ours = []
    for text, row in zip(corpus.texts, corpus.Y):
        uris = sorted(corpus.labels.ids[label] for label in row.indices if label < len(known))
        ours.append(" ".join([str(len(text.strip())), *uris]))
    if file.endswith(".jsonl"):  # Annif passes over objects without a known subject there
        ours = [line for line in ours if " " in line]
    assert done.stdout.splitlines() == ours


def test_a_vocabulary_is_no_corpus_nor_a_corpus_a_vocabulary(tmp_path):
    (tmp_path / "v.tsv").write_text("<http://x.org/p1>\tships\n")
    with pytest.raises(ValueError, match="holds a vocabulary, not documents"):
        data.read_corpus(tmp_path / "v.tsv")
    (tmp_path / "c.tsv").write_text("old ships\t<http://x.org/p1>\n")
    with pytest.raises(ValueError, match="line 1 has a URI after a text"):
        data.read_vocabulary(tmp_path / "c.tsv")
