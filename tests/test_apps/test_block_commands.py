"""Blocks by the command line and the service: columns are saved with the model, every door says the same."""

import json
import re
from functools import cache

import numpy as np
import pytest

from metarank import MetaRanker, data, load
from metarank.apps.cli import main

THINGS = ["bridge", "kettle", "garden", "window", "candle"]
ASKED = ["--text-columns", "headline,body", "--vector-columns", "emb", "--category-columns", "colour"]
COLUMNS = {"text_columns": "headline,body", "vector_columns": "emb", "category_columns": "colour"}
QUICK = ["--quiet", "--jobs", "1", "--folds", "2", "--effort", "low", "--ranker", "logistic"]


@cache
def rows(n=80, seed=0):
    """Each of headline, vector, number and category tells of some labels."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        a, b = rng.choice(5, 2, replace=False)
        emb = (np.eye(5)[b] + 0.1 * rng.normal(size=5)).round(3)
        out.append(
            {
                "headline": f"the {THINGS[a] if a not in (2, 4) else 'thing'} part {i % 7}",
                "body": f"some words {i % 5}",
                "emb": emb.tolist(),
                "price": round(float(a == 2) + 0.1 * rng.normal(), 3) if i % 9 else None,
                "colour": ("red", "blue")[int(b == 3)],
                "labels": [THINGS[a], THINGS[b]],
            }
        )
    return out


def written(path, records):
    path.write_text("\n".join(map(json.dumps, records)))
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The rows in a file, and models of blocks and of one joined text."""
    folder = tmp_path_factory.mktemp("blocks")
    train = written(folder / "rows.jsonl", rows())
    assert main(["train", train, "--model", str(folder / "blocks"), *ASKED, *QUICK]) == 0
    text = ["--text-column", "headline,body"]
    assert main(["train", train, "--model", str(folder / "text"), *text, *QUICK]) == 0
    return folder


def run(capsys, *arguments):
    capsys.readouterr()
    code = main(list(map(str, arguments)))
    return code, *capsys.readouterr()


@pytest.mark.parametrize("model", ["blocks", "text"])
def test_columns_are_saved_with_the_model(model, folder, tmp_path, capsys):
    ranker = load(folder / model)
    options = COLUMNS if model == "blocks" else {"text_column": ["headline", "body"]}
    expected = ranker.rank(data.load(folder / "rows.jsonl", **options), k=2)
    code, out, _ = run(
        capsys, "predict", folder / model, folder / "rows.jsonl", "--top", 2, "--format", "jsonl"
    )
    assert code == 0
    found = [[entry["label"] for entry in json.loads(line)["labels"]] for line in out.splitlines()]
    assert found == expected.labels.tolist()
    for command in (["evaluate", "--metrics", "P@1"], ["explain", "--row", "3"]):
        code, out, err = run(capsys, command[0], folder / model, folder / "rows.jsonl", *command[1:])
        assert (code, "error" in err) == (0, False), err


def test_inspect_tells_of_blocks(folder, capsys):
    code, told, _ = run(capsys, "inspect", folder / "blocks")
    assert code == 0
    for part in load(folder / "blocks").encoder_.parts:
        assert f"{part.name}: {part.kind}" in told


def test_unnamed_columns_are_not_saved(tmp_path):
    renamed = [{"text": row["headline"], "labels": row["labels"]} for row in rows()]
    path = written(tmp_path / "rows.jsonl", renamed)
    assert main(["train", path, "--model", str(tmp_path / "usual"), *QUICK]) == 0
    assert load(tmp_path / "usual").text_columns_ is None
    assert not any(b"text_columns" in file.read_bytes() for file in (tmp_path / "usual").iterdir())


@pytest.mark.parametrize(
    ("model", "change", "said"),
    [
        ("blocks", {"emb": ...}, "--vector-columns must be among .*, got 'emb'"),
        ("blocks", {"headline": ...}, "--text-columns must be among .*, got 'headline'"),
        ("text", {"body": ...}, "--text-column must be among .*, got 'body'"),
        (
            "blocks",
            {"emb": [1.0, 2.0]},
            "'emb' of X must hold vectors of one width, got 5 and 2 numbers, at line 1 and line 2",
        ),
        ("blocks", {"emb": None}, "'emb' of X must hold a vector per row, got None at line 2"),
        ("blocks", {"price": "dear"}, "'price' of X must hold numbers, got 'dear' at line 2"),
        ("blocks", {"body": 3}, "'body' of X must hold a text per row, got 3 at line 2"),
    ],
)
def test_a_file_that_does_not_suit_is_one_line(model, change, said, folder, tmp_path, capsys):
    kept = {name: value for name, value in rows()[1].items() if change.get(name) is not ...}
    first = {name: value for name, value in rows()[0].items() if change.get(name) is not ...}
    path = written(tmp_path / "new.jsonl", [first, kept | {k: v for k, v in change.items() if v is not ...}])
    code, _, err = run(capsys, "predict", folder / model, path)
    errors = [line for line in err.splitlines() if "error" in line]
    assert code == 2
    assert len(errors) == 1
    assert re.search(said, errors[0])


def test_groups_vectors_of_another_width_and_a_typed_text_are_no_blocks(folder, tmp_path, capsys):
    narrow = written(tmp_path / "new.jsonl", [row | {"emb": [1.0, 2.0]} for row in rows()[:3]])
    train = ["train", folder / "rows.jsonl", "--model", tmp_path / "model", *ASKED]
    blocks = "headline, body, price, colour, emb"
    for argv, said in (
        ([*train, "--groups-column", "price"], "--groups-column must not be a feature, got 'price'"),
        (["predict", folder / "blocks", narrow], "emb"),
        (
            ["predict", folder / "blocks", "--text", "a bridge"],
            f"one text; this one takes the blocks {blocks}",
        ),
    ):
        code, _, err = run(capsys, *argv)
        assert code == 2
        assert said in err.splitlines()[-1]


def test_a_model_of_blocks_of_its_own_reads_columns_by_their_names(tmp_path, capsys):
    """Fitted in Python with a block of numbers under another name than files give it."""
    of = rows()
    X = {"headline": [row["headline"] for row in of], "price": [row["price"] for row in of]}
    model = MetaRanker(effort="low", ranker="logistic", n_folds=2, n_jobs=1)
    model.fit(X, [row["labels"] for row in of]).save(tmp_path / "own")
    path = written(tmp_path / "rows.jsonl", of)
    code, out, err = run(capsys, "predict", tmp_path / "own", path, "--top", 1, "--format", "jsonl")
    assert code == 0, err
    found = [json.loads(line)["labels"][0]["label"] for line in out.splitlines()]
    assert found == model.rank(X, k=1).labels[:, 0].tolist()


def served(model, instances, **fields):
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from metarank.serve import create_app

    reply = TestClient(create_app(model)).post("/rank", json={"instances": instances, "k": 3, **fields})
    return reply.status_code, reply.json()


def test_the_service_ranks_as_the_model(folder):
    model = load(folder / "blocks")
    instances = [{k: v for k, v in row.items() if k != "labels"} for row in rows()[:6]]
    status, reply = served(model, instances)
    assert status == 200, reply
    expected = model.rank(data.load(folder / "rows.jsonl", **COLUMNS).take(slice(6)), k=3)
    found = [[(entry["label"], entry["score"]) for entry in one] for one in reply["rankings"]]
    assert found == list(map(list, expected))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"headline": ...}, "instances[1]['headline'] is required"),
        ({"headline": 3}, "instances[1]['headline'] must be a valid string"),
        ({"emb": [1, 2]}, "instances[1]['emb'] must have at least 5 items"),
        ({"more": 1}, "instances[1]['more'] is not a field"),
        ("a bridge", "instances[1] must be a valid dictionary"),
    ],
)
def test_an_instance_that_does_not_suit_is_refused(change, said, folder):
    model = load(folder / "blocks")
    row = change
    if isinstance(change, dict):
        row = {k: v for k, v in (rows()[1] | change).items() if k != "labels" and v is not ...}
    status, reply = served(model, [{k: v for k, v in rows()[0].items() if k != "labels"}, row])
    assert status == 422
    assert said in reply["error"]
    assert len(reply["error"]) < 300
