"""Saved models: a versioned folder, checksums, memory-mapped arrays, no pickle.

A model is a tree of dicts, lists, numbers, strings, arrays, CSR matrices and
objects of registered classes. Arrays become ``.npy`` files, weights of
networks ``.safetensors``, long texts and lists of strings ``.json``;
everything else is in ``manifest.json``, which lists each file with its size
and SHA-256 and carries a digest of itself. Equal contents, such as the training
rows that several scorers keep, share a file.

A folder is untrusted input: digests detect damage, not malice. So none of it is executed, only registered
classes are loaded, sizes are compared with those of the files before memory is allocated (`Limits`), and each
class declares dtype, shape, range and consistency of its fields (`metarank.persist.spec`).
"""

from metarank.persist.folder import FORMAT, FORMAT_VERSION, MANIFEST, check_target, load, read_manifest, save
from metarank.persist.trust import Limits, ModelError, register

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "MANIFEST",
    "Limits",
    "ModelError",
    "check_target",
    "load",
    "read_manifest",
    "register",
    "save",
]
