"""`Subwords`: texts as short lists of subword ids, by byte-pair encoding."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from metarank.persist.fields import Known, Strings
from metarank.persist.spec import Saved, Spec

# The id that ends short texts; no text has it.
PAD = 0
_PAD_TOKEN = "[pad]"
_START_OF_WORD = "▁"


def _check(known: Known) -> None:
    words, merges = known.words, known.merges
    if len(set(words)) < len(words) or words[:1] != [_PAD_TOKEN] or _START_OF_WORD not in words:
        raise ValueError(f"subwords must be distinct, begin with {_PAD_TOKEN!r} and hold {_START_OF_WORD!r}")
    vocabulary = set(words)
    for first, _, second in (merge.partition(" ") for merge in merges):
        if not {first, second, first + second} <= vocabulary:
            raise ValueError(
                f"merges of subwords must make a subword of two, got {first[:40]!r}, {second[:40]!r}"
            )


class Subwords(Saved):
    """Byte-pair encoding (Sennrich et al., 2016), learned from texts.

    Texts are normalised to Unicode NFKC, lower-cased, and split at white space and punctuation. The most
    frequent pair of neighbouring subwords becomes a subword until there are `vocabulary_size`, or no pair
    occurs twice. Characters that did not occur in training are dropped.

    Parameters
    ----------
    words : list of str
        The subwords by id; one that begins a word begins with "▁".
    merges : list of str
        Pairs of subwords that become one, the first learned first, each as "a b".

    Examples
    --------
    >>> subwords = Subwords.trained(["red wine", "red tea", "green tea"], 100)
    >>> (subwords.encode(["Red tea", "☃", "tea"], 8) != PAD).sum(axis=1)
    array([2, 0, 1])
    """

    saved: ClassVar[Spec] = Spec(Strings("words"), Strings("merges"), check=_check)

    def __init__(self, words: list[str], merges: list[str]) -> None:
        self.words: list[str] = words
        self.merges: list[str] = merges
        self._begins_word: list[bool] = [word.startswith(_START_OF_WORD) for word in words]
        self._mark: int = words.index(_START_OF_WORD)
        self._tokenizer = _tokenizer(words, merges)

    @classmethod
    def trained(cls, texts: Iterable[str], vocabulary_size: int) -> Subwords:
        """Subwords of these texts: at most `vocabulary_size`, padding and single characters included."""
        from tokenizers.trainers import BpeTrainer

        tokenizer = _tokenizer([], [])
        texts = [tokenizer.normalizer.normalize_str(_encodable(text)) for text in texts]
        # Half of the room at most is for single characters. The library breaks ties at random.
        frequency = Counter(chain.from_iterable(texts))
        for c in [c for c in frequency if c.isspace() or c == _START_OF_WORD]:
            del frequency[c]
        characters = sorted(frequency, key=lambda c: (-frequency[c], c))[: vocabulary_size // 2 - 1]
        alphabet = [_START_OF_WORD, *characters]
        trainer = BpeTrainer(
            vocab_size=vocabulary_size,
            min_frequency=2,
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            special_tokens=[_PAD_TOKEN],
            show_progress=False,
        )
        tokenizer.train_from_iterator(chain([""], texts), trainer)
        vocabulary = tokenizer.get_vocab()
        merges = json.loads(tokenizer.to_str())["model"]["merges"]
        return cls(
            sorted(vocabulary, key=vocabulary.__getitem__),
            [pair if isinstance(pair, str) else " ".join(pair) for pair in merges],
        )

    def __len__(self) -> int:
        """Subwords, padding included."""
        return len(self.words)

    def encode(self, texts: Sequence[str], max_length: int) -> np.ndarray:
        """Ids of each text's first `max_length` subwords, int64 (n, longest), padded with `PAD`."""
        # One by one: encoding in batches brings threads of its own.
        lists = [self._ids(text)[:max_length] for text in texts]
        out = np.full((len(lists), max(1, max(map(len, lists), default=0))), PAD, np.int64)
        for row, ids in zip(out, lists):
            row[: len(ids)] = ids
        return out

    def _ids(self, text: str) -> list[int]:
        ids = self._tokenizer.encode(_encodable(text)).ids
        # A mark that begins a word of unknown characters only stands alone.
        followed = zip(ids, [*ids[1:], self._mark])
        return [i for i, after in followed if i != self._mark or not self._begins_word[after]]


def _tokenizer(words: list[str], merges: list[str]) -> Any:
    """A tokenizer of the library `tokenizers`."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = {word: i for i, word in enumerate(words)}
    pairs = [(merge.partition(" ")[0], merge.partition(" ")[2]) for merge in merges]
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.BertPreTokenizer(),
            pre_tokenizers.Metaspace(replacement=_START_OF_WORD, prepend_scheme="always"),
        ]
    )
    return tokenizer


def _encodable(text: str) -> str:
    """The text with "?" for what stands in no encoding, such as half of a pair of surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
