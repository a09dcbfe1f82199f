"""Vocabularies: SKOS in its syntaxes, and the TSV and CSV of Annif."""

import gzip
import lzma
import os
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from metarank.data import read_vocabulary
from metarank.types.label_descriptions import depths, relation, without_cycles

pytest.importorskip("pyoxigraph")

PREFIXES = (
    "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n@prefix x: <http://x.org/> .\n"
)
TURTLE = (
    PREFIXES
    + """
x:ships a skos:Concept ; skos:prefLabel "ships"@en, "laivat"@fi ; skos:narrower x:boats .
x:boats a skos:Concept ; skos:prefLabel "boats"@en ; skos:altLabel "small craft"@en, "boats"@en, "veneet"@fi ;
    skos:hiddenLabel "boots"@en ; skos:related x:oars ; skos:notation "12.3" .
x:oars a skos:Concept ; skos:prefLabel "oars"@en-GB, "airot"@fi ; skos:broader x:elsewhere .
x:old a skos:Concept ; skos:prefLabel "old"@en ; owl:deprecated true .
x:bare a skos:Concept .
x:scheme a skos:ConceptScheme ; skos:prefLabel "a scheme"@sv .
"""
)
XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
 xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="http://x.org/ships">
<skos:prefLabel xml:lang="en">ships</skos:prefLabel></skos:Concept>
<skos:Concept rdf:about="http://x.org/boats"><skos:prefLabel xml:lang="en">boats</skos:prefLabel>
<skos:broader rdf:resource="http://x.org/ships"/></skos:Concept>
</rdf:RDF>
"""
JSON = """{"@context": {"skos": "http://www.w3.org/2004/02/skos/core#"}, "@graph": [
{"@id": "http://x.org/ships", "@type": "skos:Concept",
 "skos:prefLabel": {"@value": "ships", "@language": "en"}},
{"@id": "http://x.org/boats", "@type": "skos:Concept", "skos:broader": {"@id": "http://x.org/ships"},
 "skos:prefLabel": {"@value": "boats", "@language": "en"}}]}
"""
TWO = 'x:ships a skos:Concept ; skos:prefLabel "ships"@en .\n'
TWO += 'x:boats a skos:Concept ; skos:prefLabel "boats"@en ; '


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_names_relations_and_what_is_left_out(tmp_path):
    path = written(tmp_path, "v.ttl", TURTLE)
    with pytest.warns(UserWarning, match="v.ttl: 1 deprecated") as told:
        labels = read_vocabulary(path, "en")
    assert labels.ids == [f"http://x.org/{name}" for name in ("ships", "boats", "oars", "bare")]
    assert labels.names == ["ships", "boats", "oars", ""]
    assert labels.alternative_names == [[], ["small craft", "boots"], [], []]
    assert labels.parents.nonzero()[0].tolist() == [1]
    assert labels.parents.nonzero()[1].tolist() == [0]
    assert labels.related.nnz == 2
    assert len(told) == 1
    said = str(told[0].message)
    assert "1 deprecated" in said
    assert "1 concepts have no name in 'en': 'http://x.org/bare'" in said
    assert "1 relations to unknown concepts" in said
    with pytest.warns(UserWarning, match="v.ttl: 1 concepts have no name"):
        assert read_vocabulary(path, "en", deprecated=True).names == ["ships", "boats", "oars", "old", ""]
    with pytest.warns(UserWarning, match="2 concepts have no name in 'FI'"):
        finnish = read_vocabulary(path, "FI")
    assert finnish.names == ["laivat", "", "airot", ""]
    assert finnish.alternative_names == [[], ["veneet"], [], []]


@pytest.mark.parametrize(
    ("language", "said"),
    [
        (
            "xx",
            r"language must be one of those of the file, which are en \(2\), en-gb \(1\), fi \(2\), got 'xx'",
        ),
        (None, r"language must be one of those .* which are en \(2\), en-gb \(1\), fi \(2\), got None"),
        ("", "language must be a language"),
    ],
)
def test_languages_are_listed(tmp_path, language, said):
    with pytest.raises(ValueError, match=said):
        read_vocabulary(written(tmp_path, "v.ttl", TURTLE), language)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ('skos:prefLabel "a", "b"@de', "a"),  # without a language
        ('skos:prefLabel "a", "b"@en-US, "c"@en', "c"),
        ('skos:prefLabel "a", "b"@en-US, "d"@en-GB', "d"),
        ('rdfs:label "a"@en ; skos:prefLabel "b"@en', "b"),
        ('rdfs:label "a"@en ; skos:prefLabel "b"@de', "a"),
        ('skos:prefLabel "b"@en, "a"@en', "b"),  # the first of the file
    ],
)
def test_which_name_is_taken(tmp_path, labels, expected):
    prefixes = f"{PREFIXES}@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
    text = f"{prefixes}x:a a skos:Concept ; {labels} .\n"
    assert read_vocabulary(written(tmp_path, "v.ttl", text), "en").names == [expected]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("v.ttl", f"{PREFIXES}{TWO}skos:broader x:ships ."),
        ("v.rdf", XML),
        ("v.jsonld", JSON),
        (
            "v.jsonld",
            JSON.replace(
                '"@id": "http://x.org/ships", "@type": "skos:Concept",\n ', '"@type": "skos:Concept",'
            ).replace('"@language": "en"}},', '"@language": "en"}, "@id": "http://x.org/ships"},', 1),
        ),
    ],
)
def test_syntaxes_agree(tmp_path, name, text):
    labels = read_vocabulary(written(tmp_path, name, text), "en")
    assert labels.columns() == {
        "ids": ["http://x.org/ships", "http://x.org/boats"],
        "names": ["ships", "boats"],
        "parents": [[], ["http://x.org/ships"]],
    }


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("v.ttl", f'{PREFIXES}x:a a skos:Concept ; skos:prefLabel "a@en .\n', "v.ttl: .*line 4"),
        ("v.rdf", XML.replace("</rdf:RDF>", ""), "v.rdf: .*line 9"),
        ("v.rdf", XML.replace("</skos:Concept>", "</x>", 1), "v.rdf: mismatched tag: line 5"),
        ("v.jsonld", JSON.replace("}]}", "}],}"), "v.jsonld: .*line 5"),
        ("v.jsonld", '{"@context": "http://x.org/c", "@id": "http://x.org/a"}', "remote contexts"),
        ("v.ttl", PREFIXES, "holds no concept of SKOS"),
        ("v.ttl", f"{PREFIXES}x:a a skos:Concept ; owl:deprecated true .", "not deprecated; deprecated=True"),
        ("v.ttl", " \n", "holds no concept of SKOS"),
        ("v", PREFIXES, "must be .tsv, .csv, or RDF such as .ttl or .rdf, got ''"),
        ("v.csv", "id,name\n1,a\n", "must have the columns 'uri' and 'label_en'"),
        ("v.csv", 'uri,label_en\nhttp://x.org/a,"a\n', "do its quotes balance"),
    ],
)
def test_bad_files_are_named(tmp_path, name, text, said):
    with pytest.raises(ValueError, match=said):
        read_vocabulary(written(tmp_path, name, text), "en")


def test_cycles_of_broader_are_broken_alike_in_any_order(tmp_path):
    lines = [
        f'x:{a} a skos:Concept ; skos:prefLabel "{a}"@en ; skos:broader x:{b} .' for a, b in pairwise("abcda")
    ]
    lines.append("x:a skos:broader x:a .")
    found = []
    for order in (lines, lines[::-1]):
        with pytest.warns(UserWarning, match="2 links of broader close a cycle .*x.org/a -> http://x.org/a"):
            labels = read_vocabulary(written(tmp_path, "v.ttl", PREFIXES + "\n".join(order)), "en")
        found.append(dict(zip(labels.ids, labels.columns()["parents"])))
    assert found[0] == found[1]
    assert found[0]["http://x.org/d"] == []
    assert found[0]["http://x.org/a"] == ["http://x.org/b"]


@pytest.mark.parametrize("seed", range(20))
def test_without_cycles_leaves_none_and_takes_only_what_it_must(seed):
    rng = np.random.default_rng(seed)
    n = 12
    parents = relation(rng.integers(0, n, 25), rng.integers(0, n, 25), n)
    kept, closing = without_cycles(parents)
    depths(kept)  # raises if there is a cycle
    assert (kept + relation([a for a, _ in closing], [b for _, b in closing], n) != parents).nnz == 0
    for a, b in closing:  # each of them alone closes one
        again = kept.tolil()
        again[a, b] = 1
        with pytest.raises(ValueError, match="cycle"):
            depths(again.tocsr())


@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("v.tsv", '<http://x.org/a>\ta "b\n\nhttp://x.org/b\tb\t12.3\n<http://x.org/c>\n', ['a "b', "b"]),
        ("v.tsv", "\ufeff<http://x.org/a>\tä\n<http://x.org/b>\tb", ["ä", "b"]),
        ("v.csv", "uri,notation,label_fi,label_en\nhttp://x.org/a,,x,a\n<http://x.org/b>,1,,b\n", ["a", "b"]),
        (
            "v.csv",
            "\ufeffuri,label_en,label_fi\nhttp://x.org/a,a,\nhttp://x.org/b,b,\nhttp://x.org/c,,\n",
            ["a", "b"],
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*1 deprecated concepts are left out")
def test_tables_of_annif(tmp_path, name, text, names, packed):
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[packed]
    path = tmp_path / f"{name}{packed}"
    path.write_bytes(pack(text.encode()))
    labels = read_vocabulary(path, "en")
    assert labels.names == names
    assert labels.ids == ["http://x.org/a", "http://x.org/b"]


ARCHAEOLOGY = Path(os.environ.get("METARANK_DATA", "/none")) / "annif" / "archaeology"
needs_data = pytest.mark.skipif(not ARCHAEOLOGY.is_dir(), reason="METARANK_DATA has no annif/archaeology")


@needs_data
def test_the_archaeology_vocabulary_in_all_its_files():
    turtle = read_vocabulary(ARCHAEOLOGY / "yso-archaeology.ttl", "fi")
    xml = read_vocabulary(ARCHAEOLOGY / "yso-archaeology.rdf", "fi")
    names = dict(zip(turtle.ids, turtle.names))
    assert names == dict(zip(xml.ids, xml.names))
    assert len(names) == 130
    tables = [read_vocabulary(ARCHAEOLOGY / f"subjects.{ending}", "fi") for ending in ("tsv", "csv")]
    assert tables[0].columns() == tables[1].columns()
    assert all(names[uri] == name for uri, name in zip(tables[0].ids, tables[0].names) if uri in names)


@needs_data
@pytest.mark.skipif("ANNIF_PYTHON" not in os.environ, reason="ANNIF_PYTHON names no Python with Annif")
@pytest.mark.parametrize("file", ["yso-archaeology.ttl", "subjects.tsv", "subjects.csv", "subjects-bom.tsv"])
def test_annif_reads_the_same(file):
    path = ARCHAEOLOGY / file
    kind = {".ttl": "SKOS(p)", ".tsv": "TSV(p, 'fi')", ".csv": "CSV(p)"}[path.suffix]
    module = "skos" if path.suffix == ".ttl" else "subject_file"
    code = (
        f"import annif.corpus\nfrom annif.vocab.{module} import *\np = {str(path)!r}\n"
        f"for s in VocabFile{kind}.subjects: print(s.uri, s.labels['fi'], sep='\\t')"
    )
    out = subprocess.run(
        [os.environ["ANNIF_PYTHON"], "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    ).stdout
    labels = read_vocabulary(path, "fi")
    ours = [f"{uri}\t{name}" for uri, name in zip(labels.ids, labels.names)]
    assert sorted(out.splitlines()) == sorted(ours)
