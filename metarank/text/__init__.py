"""Labels with names: `LabelEmbedder`, language-aware label embeddings. Training needs the extra ``text``."""

from metarank.text.embedder import LabelEmbedder

__all__ = ["LabelEmbedder"]
