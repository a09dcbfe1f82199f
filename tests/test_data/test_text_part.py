"""Which part of a long text is read."""

import itertools

import pytest

from metarank import Dataset, MetaRanker
from metarank.data import TextVectorizer, from_texts
from metarank.data.text_part import check_text_part, shortened
from metarank.persist import load

SENTENCES = "".join(f"This is sentence {i} of the text. " for i in range(2000))


@pytest.mark.parametrize("part", ["head:500", "sample:500", "sample:5000"])
@pytest.mark.parametrize(
    "text",
    [
        SENTENCES,
        "word " * 20_000,
        "字" * 20_000,
        "\n" * 20_000,
        "a" * 499 + " " + "b" * 9000,
        "line\n" * 9000,
    ],
)
def test_a_part_is_short_and_its_own_part(text, part):
    found = shortened(text, part)
    size = int(part.partition(":")[2])
    assert 0 < len(found) <= size
    assert shortened(found, part) == found
    assert shortened(text[:size], part) == text[:size]
    assert shortened(text, None) is text


@pytest.mark.parametrize(
    ("text", "expected"), [("abc def" * 50, "abc"), ("abc " * 50, "abc"), ("ab\ncde" * 50, "ab")]
)
def test_a_head_holds_whole_words(text, expected):
    head = shortened(text, "head:100")
    assert text.startswith(head)
    assert head.split()[0].startswith(expected)
    assert text[len(head)].isspace() or text[len(head) - 1].isspace()


def test_a_sample_is_of_whole_sentences_from_everywhere():
    found = shortened(SENTENCES, "sample:2000")
    ids = [int(sentence.split()[3]) for sentence in found.split(".") if sentence.strip()]
    assert ids[0] == 0
    assert ids == sorted(ids)
    assert ids[-1] > 1900
    gaps = [b - a for a, b in itertools.pairwise(ids)]
    assert max(gaps) <= 2 * min(gaps)
    assert len(found) > 1800


@pytest.mark.parametrize(
    "bad", ["head", "head:", "head:99", "tail:500", "head:-5", "head:5e3", "sample:99999999999"]
)
def test_bad_parts_are_named(bad):
    for call in (check_text_part, lambda part: TextVectorizer(text_part=part).fit(["a b"])):
        with pytest.raises(ValueError, match=f"text_part must be None, 'head:N' or 'sample:N'.*got '{bad}'"):
            call(bad)
    with pytest.raises(ValueError, match="text_part must be"):
        check_text_part(500)


@pytest.mark.parametrize("part", ["head:200", "sample:200"])
def test_a_model_reads_the_same_part_later(tmp_path, part):
    words = ["sea salt", "sun heat"]
    texts = [f"{words[i % 2]} {i}. " + "filler words are here. " * 50 for i in range(40)]
    labels = [[words[i % 2].split()[0]] for i in range(40)]
    model = MetaRanker(effort="low", n_folds=2, n_jobs=1).fit(from_texts(texts, labels, text_part=part))
    cut = MetaRanker(effort="low", n_folds=2, n_jobs=1).fit([shortened(t, part) for t in texts], labels)
    new = ["sea salt. " + "sun heat. " * 1000, "sun heat. " + "filler words. " * 1000]
    expected = cut.decision_function([shortened(text, part) for text in new])
    assert (model.decision_function(new) == expected).all()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.encoder_.vectorizer.text_part == part
    assert (again.decision_function(new) == expected).all()


def test_a_part_of_numbers_is_refused():
    with pytest.raises(ValueError, match="text_part must be None without texts"):
        Dataset([[1.0], [2.0], [3.0]], [["a"], ["b"], ["a"]], text_part="head:200")
