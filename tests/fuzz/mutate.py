"""Mutations of bytes, of JSON values and of whole model folders, each a function of a seeded generator."""

from __future__ import annotations

import copy
import json
import random
import shutil
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from metarank import persist
from metarank._util.registry import SAVED
from metarank.persist.folder import digest_of

# Numbers at the edges of types, sizes and ranges.
INTEGERS = [*(0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 32767, 65535, 65536), 2**31 - 1, 2**31, -(2**31)]
INTEGERS += [2**32, 2**40, 2**53, 2**62, 2**63 - 1, -(2**63), 2**64, 10**30]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e-45, 1e-38, 1e-30, 1e30, 3.4e38, -3.4e38, 1e300, -1e300, 5e-324]
NO_NUMBERS = [float("nan"), float("inf"), float("-inf")]
WORDS = ["", "a", "\0", "\ud800", "é" * 50, "__array__", "../x", "nan", "{}", "x" * 5000, "MetaRanker"]
WORDS += ["auto"]


def mutate_bytes(data: bytes, rng: random.Random, most: int = 1 << 16) -> bytes:
    """A few flips, overwritten numbers, cuts, doublings or insertions."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if not out:
            return rng.randbytes(rng.randrange(64))
        at = rng.randrange(len(out))
        kind = rng.choice((*range(9), *range(9), 9))
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at] = rng.randrange(256)
        elif kind == 2:
            width = rng.choice((1, 2, 4, 8))
            value = rng.choice(INTEGERS) % 256**width
            out[at : at + width] = value.to_bytes(width, rng.choice(("little", "big")))
        elif kind == 3:
            out[at : at + 4] = struct.pack("<f", np.float32(rng.choice(FLOATS[:10] + NO_NUMBERS)))
        elif kind == 4:
            del out[at : at + rng.randrange(1, 40)]
        elif kind == 5:
            out[at:at] = out[at : at + rng.randrange(1, 200)]
        elif kind == 6:
            out[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 7:
            out[at:at] = str(rng.choice(INTEGERS + FLOATS + NO_NUMBERS)).encode()
        elif kind == 9:  # deeper or longer than anybody writes
            out[at:at] = rng.choice((b"[", b'{"a":', b'"', b",", out[at : at + 1])) * rng.choice((100, 3000))
        else:
            other = rng.randrange(len(out))
            n = rng.randrange(1, 30)
            out[at : at + n] = out[other : other + n]
    return bytes(out[:most])


def mutate_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """The same array with other values, mostly; or with another order, shape or dtype."""
    kind = rng.randrange(13)
    flat = array.reshape(-1).copy()
    if kind >= 10 and flat.size:
        part = slice(rng.randrange(flat.size), None) if kind == 10 else slice(None)
        if kind == 12:
            flat = flat[::-1].copy()
        elif flat.dtype.kind == "f":
            with np.errstate(over="ignore"):
                flat[part] *= rng.choice((0, -1, 1e-30, 1e10, 1e30, 1e38))
        else:
            flat[part] = flat[rng.randrange(flat.size)]
        return flat.reshape(array.shape)
    if kind <= 5 and flat.size:
        for _ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(flat.size)
            if flat.dtype.kind == "f":
                flat[at] = rng.choice(FLOATS + NO_NUMBERS + [float(flat[rng.randrange(flat.size)]) * 2])
            elif flat.dtype.kind in "iu":
                low, high = int(np.iinfo(flat.dtype).min), int(np.iinfo(flat.dtype).max)
                near = int(flat[rng.randrange(flat.size)]) + rng.choice((-1, 0, 1, 2))
                value = rng.choice([*INTEGERS, near, near, near, len(flat), rng.randrange(64)])
                flat[at] = min(high, max(low, value))
            elif flat.dtype.kind == "b":
                flat[at] = not flat[at]
        return flat.reshape(array.shape)
    if kind == 6:
        return array[: rng.randrange(len(array))] if array.ndim and len(array) else array.reshape(-1)
    if kind == 7:
        times = rng.choice((2, 3))
        return np.concatenate([array] * times) if array.ndim else np.array([array] * times)
    if kind == 8:
        return array.astype(rng.choice(("f4", "f8", "i4", "i8", "u1", "i2", "u4", "?", "f2")))
    shape = rng.choice([(-1,), (-1, 1), (1, -1), (1, 1, -1)])
    return np.asfortranarray(array) if rng.random() < 0.3 else array.reshape(shape)


def mutate_json(value: Any, rng: random.Random) -> Any:
    """The value with one or two places changed: replaced, removed, doubled, or exchanged with another."""
    value = json.loads(json.dumps(value))  # a copy, several times as quickly as by `deepcopy`
    for _ in range(rng.choice((1, 1, 2))):
        places = list(_places(value))
        if not places:
            return rng.choice(INTEGERS)
        parent, key = rng.choice(places)
        kind = rng.randrange(8)
        old = parent[key]
        if kind <= 2:
            parent[key] = _replacement(old, rng)
        elif kind == 3:
            del parent[key]
        elif kind == 4 and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(old))
        elif kind == 5:
            other, other_key = rng.choice(places)
            try:
                parent[key] = copy.deepcopy(other[other_key])
            except (KeyError, IndexError):  # it has gone with another place
                continue
        elif kind == 6:
            parent[key] = rng.choice([[old], {"a": old}, [], {}, None, {"__float__": "nan"}])
        else:
            parent[key] = rng.choice([*INTEGERS, *FLOATS, *WORDS, True, False, None])
    return value


def _replacement(old: Any, rng: random.Random) -> Any:
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return rng.choice([*INTEGERS, old + 1, old - 1, old * 2, -old])
    if isinstance(old, float):
        return rng.choice([*FLOATS, old * 2, -old, *({"__float__": str(v)} for v in NO_NUMBERS)])
    if isinstance(old, str):
        return rng.choice([*WORDS, old + "x", old[:-1], *SAVED])
    return rng.choice([None, 0, "", [], {}])


def _places(value: Any) -> Any:
    """(parent, key) of all that is in lists and mappings."""
    waiting = [value]
    while waiting:
        parent = waiting.pop()
        keys = list(parent) if isinstance(parent, dict) else range(len(parent))
        for key in keys:
            yield parent, key
            if isinstance(parent[key], (dict, list)):
                waiting.append(parent[key])


class Folder:
    """A saved model to be mutated: its manifest and the bytes of its files."""

    def __init__(self, path: Path) -> None:
        self._manifest = (path / persist.MANIFEST).read_text()
        self.files = {p.name: p.read_bytes() for p in path.iterdir() if p.name != persist.MANIFEST}
        self._written: dict[Path, set[str]] = {}

    def mutant(self, rng: random.Random, target: Path) -> str:
        """Write a mutant to the folder `target`, mostly with digests that fit; what was changed."""
        manifest, files = json.loads(self._manifest), dict(self.files)
        done = []
        for _ in range(rng.choice((1, 1, 1, 2))):
            if rng.random() < 0.45:
                manifest["model"] = mutate_json(manifest["model"], rng)
                done.append("manifest")
                continue
            name = rng.choice(sorted(files))
            files[name] = self._mutant_file(name, files[name], manifest, rng)
            done.append(name)
        if rng.random() < 0.02:
            manifest = mutate_json(manifest, rng)
            done.append("whole manifest")
        self._write(target, manifest, files)
        return " + ".join(done)

    def _write(self, target: Path, manifest: Any, files: dict[str, bytes]) -> None:
        """Only what differs from the mutant before, and into no file that a model may still have mapped."""
        if target not in self._written:
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            self._written[target] = set(files)
        changed = {name for name, content in files.items() if content is not self.files[name]}
        for name in changed | self._written[target]:
            (target / name).unlink(missing_ok=True)
            (target / name).write_bytes(files[name])
        self._written[target] = changed
        write_manifest(target, manifest, {name: files[name] for name in changed})

    def _mutant_file(self, name: str, content: bytes, manifest: dict[str, Any], rng: random.Random) -> bytes:
        # NumPy reads the bytes of a mutant with errors of many kinds.
        if name.endswith(".npy") and content is self.files[name] and rng.random() < 0.85:
            try:
                array = mutate_array(np.load(_stream(content)), rng)
            except ValueError:  # a shape that does not divide
                return mutate_bytes(content, rng)
            out = _stream(b"")
            np.save(out, array)
            _describe(manifest["model"], name, array)
            return out.getvalue()
        if name.endswith(".json") and rng.random() < 0.7:
            try:
                return json.dumps(mutate_json(json.loads(content), rng)).encode("utf-8", "surrogatepass")
            except (ValueError, TypeError):
                pass
        return mutate_bytes(content, rng, most=1 << 22)


def write_manifest(folder: Path, manifest: Any, files: dict[str, bytes]) -> None:
    """The manifest, as an attacker writes it: sizes and digests are those of the files that changed."""
    import hashlib

    if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict):
        for name, entry in manifest["files"].items():
            if name in files and isinstance(entry, dict):
                entry["bytes"], entry["sha256"] = len(files[name]), hashlib.sha256(files[name]).hexdigest()
    if isinstance(manifest, dict):
        with suppress(UnicodeEncodeError):  # half of a pair of surrogates has no digest: that of before stays
            manifest["digest"] = digest_of(manifest)
    (folder / persist.MANIFEST).write_text(json.dumps(manifest))


def _describe(value: Any, name: str, array: np.ndarray) -> None:
    """Let the manifest say of a file what it holds now."""
    if isinstance(value, dict):
        if value.get("__array__") == name:
            value["dtype"], value["shape"] = array.dtype.str, list(array.shape)
        for child in value.values():
            _describe(child, name, array)
    elif isinstance(value, list):
        for child in value:
            _describe(child, name, array)


def _stream(content: bytes) -> Any:
    import io

    return io.BytesIO(content)
