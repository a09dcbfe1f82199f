"""`Subwords`: texts as short lists of subword ids, by byte-pair encoding."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

# The id that ends short texts where texts stand in a rectangle; no subword has it.
PAD = 0
_PAD_TOKEN = "[pad]"
_START_OF_WORD = "▁"


class TokenLists(NamedTuple):
    """Subword ids of texts: text i owns ``tokens[indptr[i]:indptr[i + 1]]``.

    Attributes
    ----------
    indptr : int64 array (n + 1,)
    tokens : int32 array (m,), none of them `PAD`
    """

    indptr: np.ndarray
    tokens: np.ndarray

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    def take(self, rows: np.ndarray) -> TokenLists:
        """Some of the texts, in the given order."""
        counts = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        at = np.repeat(self.indptr[:-1][rows] - indptr[:-1], counts) + np.arange(indptr[-1])
        return TokenLists(indptr, self.tokens[at])

    def padded(self) -> tuple[np.ndarray, np.ndarray]:
        """int64 (n, longest, at least 1) padded with `PAD`, and the lengths, int64 (n,)."""
        lengths = np.diff(self.indptr)
        out = np.full((self.n_rows, max(1, int(lengths.max(initial=0)))), PAD, np.int64)
        out[np.arange(out.shape[1]) < lengths[:, None]] = self.tokens
        return out, lengths


def joined(*parts: TokenLists) -> TokenLists:
    """The texts of all parts, one part after another.

    Examples
    --------
    >>> one = TokenLists(np.array([0, 2]), np.array([5, 7], np.int32))
    >>> joined(one, one).indptr
    array([0, 2, 4])
    """
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return TokenLists(indptr, np.concatenate([part.tokens for part in parts]))


class Subwords:
    """Byte-pair encoding (Sennrich et al., 2016), learned from texts.

    Texts are normalised to Unicode NFKC, lower-cased, and split at white space and punctuation. The most
    frequent pair of neighbouring subwords becomes a subword until there are `vocabulary_size`, or no pair
    occurs twice. Characters that did not occur in training are dropped.

    Parameters
    ----------
    state : str
        The JSON text of a tokenizer of the library `tokenizers`; see `trained`.

    Examples
    --------
    >>> subwords = Subwords.trained(["red wine", "red tea", "green tea"], 100)
    >>> subwords.encode(["Red tea", "☃", "tea"], 8).indptr
    array([0, 2, 2, 3])
    """

    def __init__(self, state: str) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_str(state)
        words = self.words()
        self._begins_word = np.array([word.startswith(_START_OF_WORD) for word in words])
        self._mark = words.index(_START_OF_WORD)

    @classmethod
    def trained(cls, texts: Iterable[str], vocabulary_size: int) -> Subwords:
        """Subwords of these texts: at most `vocabulary_size`, padding and single characters included."""
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.BPE())
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.BertPreTokenizer(),
                pre_tokenizers.Metaspace(replacement=_START_OF_WORD, prepend_scheme="always"),
            ]
        )
        texts = [tokenizer.normalizer.normalize_str(_encodable(text)) for text in texts]
        # Half of the room at most is for single characters. The library breaks ties at random.
        frequency = Counter(chain.from_iterable(texts))
        for c in [c for c in frequency if c.isspace() or c == _START_OF_WORD]:
            del frequency[c]
        characters = sorted(frequency, key=lambda c: (-frequency[c], c))[: vocabulary_size // 2 - 1]
        alphabet = [_START_OF_WORD, *characters]
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary_size,
            min_frequency=2,
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            special_tokens=[_PAD_TOKEN],
            show_progress=False,
        )
        tokenizer.train_from_iterator(chain([""], texts), trainer)
        return cls(_canonical(tokenizer.to_str()))

    @classmethod
    def restored(cls, state: str) -> Subwords:
        """From `state`, which need not be trusted: subwords and merges, and all else as `trained` has it.

        Raises
        ------
        ValueError
        """
        try:
            content = json.loads(state)
            model = content["model"]
            vocabulary, merges = model.pop("vocab"), model.pop("merges")
        except (KeyError, TypeError, AttributeError, RecursionError, ValueError):
            raise ValueError("subwords must be the state of a tokenizer") from None
        template = json.loads(cls.trained(["a"], 4).state)
        for name in ("vocab", "merges"):
            del template["model"][name]
        if content != template:
            raise ValueError("subwords must be byte-pair encoding as trained here")
        if not isinstance(vocabulary, dict) or vocabulary.get(_PAD_TOKEN) != PAD:
            raise ValueError(f"vocab of subwords must hold {_PAD_TOKEN!r} under {PAD}")
        ids = list(vocabulary.values())
        if not all(type(i) is int for i in ids) or sorted(ids) != list(range(len(ids))):
            raise ValueError("vocab of subwords must number them from 0 without a gap")
        if _START_OF_WORD not in vocabulary:
            raise ValueError(f"vocab of subwords must hold {_START_OF_WORD!r}")
        if not isinstance(merges, list) or not all(_is_merge(pair, vocabulary) for pair in merges):
            raise ValueError("merges of subwords must be pairs of subwords that make another")
        model["vocab"], model["merges"] = vocabulary, merges
        try:
            return cls(_canonical(json.dumps(content)))  # what has been looked at, and nothing else
        except Exception as error:  # the library raises no class of its own
            raise ValueError(f"subwords cannot be read: {error}") from None

    @property
    def state(self) -> str:
        """What the constructor takes."""
        return _canonical(self._tokenizer.to_str())

    def __len__(self) -> int:
        """Subwords, padding included."""
        return int(self._tokenizer.get_vocab_size())

    def words(self) -> list[str]:
        """The subwords by id; one that begins a word begins with "▁"."""
        vocabulary = self._tokenizer.get_vocab()
        return sorted(vocabulary, key=lambda word: vocabulary[word])

    def encode(self, texts: Sequence[str], max_length: int) -> TokenLists:
        """Ids of each text's first `max_length` subwords; an empty list where it has none."""
        # One by one: encoding in batches brings threads of its own.
        encode = self._tokenizer.encode
        lists = [encode(_encodable(text), add_special_tokens=False).ids for text in texts]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        tokens = np.fromiter(chain.from_iterable(lists), np.int32, int(lengths.sum()))
        row = np.repeat(np.arange(len(lists)), lengths)
        # Padding's own name has no subword, nor has a mark whose word is of unknown characters only.
        ends_word = np.append(self._begins_word[tokens[1:]] | (row[1:] != row[:-1]), True)[: len(tokens)]
        keep = (tokens != PAD) & ~((tokens == self._mark) & ends_word)
        tokens, row = tokens[keep], row[keep]
        starts = np.searchsorted(row, np.arange(len(lists) + 1))
        first = np.arange(len(tokens)) - starts[row] < max_length
        indptr = np.concatenate([[0], np.cumsum(first)])[starts].astype(np.int64)
        return TokenLists(indptr, tokens[first])


def _is_merge(pair: Any, vocabulary: dict[str, int]) -> bool:
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(part, str) for part in pair):
        return False
    return all(text in vocabulary for text in (*pair, "".join(pair)))


def _encodable(text: str) -> str:
    """The text with "?" for what stands in no encoding, such as half of a pair of surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _canonical(state: str) -> str:
    content: dict[str, Any] = json.loads(state)
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
