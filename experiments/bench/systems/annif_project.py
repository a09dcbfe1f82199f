"""A project or an ensemble of Annif, by Annif's own commands; each step is a process of its own.

Annif has two data folders. In `part` the sources of ensembles are trained without the records kept for
ensembles, on which these are trained: scores of records that a source has learned by heart teach an ensemble
to trust it too much. In `full` every project but the neural ensemble is trained on all training records, and
a copy of that ensemble from `part` stands beside them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from systems.forms import top_of_csr

LIMIT = 100
STEP = Path(__file__).resolve().with_name("annif_step.py")
_WORDS = {"min_df": 2, "ngram": 2}
# Settings of projects.cfg beside name, language, vocabulary and analyzer, as Annif's tutorial has them.
PROJECTS: dict[str, dict[str, Any]] = {
    "tfidf": {"backend": "tfidf"},
    "parabel": {"backend": "omikuji", **_WORDS},
    "bonsai": {"backend": "omikuji", "cluster_balanced": False, "cluster_k": 100, "max_depth": 3, **_WORDS},
    "mllm": {"backend": "mllm"},
    "simple": {"backend": "ensemble", "sources": "bonsai:2,mllm:1"},
    "tuned": {"backend": "ensemble", "sources": "bonsai:2,mllm:1"},
    "neural": {"backend": "nn_ensemble"},
    "metarank": {"backend": "metarank"},
}
# Epochs that are tried for the neural ensemble, its own default first; trials of weights of a simple one.
EPOCHS, TRIALS = (10, 5, 20), 30
ENVIRONMENT = {
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONHASHSEED": "0",
    "ANNIF_CONFIG": "annif.default_config.Config",
}
STEMMERS = {"en": "english", "fi": "finnish"}
# What NLTK's splitter of sentences wants; for Annif it is the English one, whatever the language.
TABLES = ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab")


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.project = version("annif"), params["project"]

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        if self.project == "metarank":
            check_metarank()
        with tempfile.TemporaryDirectory() as place:
            annif = Annif(folder, Path(place), json.loads((folder / "subjects.json").read_text())["language"])
            steps, said = annif.trained(self.project)
            out, done = annif.suggest("full", self.project, "test")
            labels, scores = lists(folder, out)
        figures = {
            "train_s": sum(step.cpu for step in steps),
            "batch_ms": 1000 * done.answer["CPU s"] / len(labels),
            "memory_mib": max(step.memory for step in (*steps, done)),
            "annif": done.answer["annif"],
            "said": said,
        }
        return figures, {"labels": labels, "scores": scores}


def check_metarank() -> None:
    """The metarank that is installed beside Annif must be this one."""
    digests = []
    for folder in (Path(find_spec("metarank").origin).parent, Path(__file__).parents[3] / "metarank"):
        files = sorted(folder.rglob("*.py"))
        parts = [str(file.relative_to(folder)).encode() + file.read_bytes() for file in files]
        digests.append(hashlib.sha256(b"".join(parts)).digest())
    if digests[0] != digests[1]:
        raise RuntimeError("another metarank is installed beside Annif: make bench-setup")


def lists(folder: Path, out: Path) -> tuple[np.ndarray, np.ndarray]:
    """Suggestions that were kept, in the set's order of subjects; equal scores are in that order."""
    uris = json.loads((folder / "subjects.json").read_text())["uris"]
    place = {uri: i for i, uri in enumerate(uris)}
    with np.load(out) as kept:
        at = np.array([place[uri] for uri in kept["uris"].tolist()], np.int32)
        shape = (len(kept["indptr"]) - 1, len(uris))
        scores = sp.csr_matrix((kept["data"], at[kept["indices"]], kept["indptr"]), shape)
    return top_of_csr(scores, min(LIMIT, len(uris)))


@dataclass(frozen=True)
class Done:
    """CPU seconds of a step's process and of those that it started, its peak MiB, what it printed last, and
    its last line where that is JSON."""

    cpu: float
    memory: float
    printed: str
    answer: dict[str, Any] = field(default_factory=dict)


class Annif:
    """The steps on one set; `place` is a folder for what Annif keeps."""

    def __init__(self, folder: Path, place: Path, language: str) -> None:
        self.folder, self.place, self.language = folder, place, language
        self.settings = {name: dict(settings) for name, settings in PROJECTS.items()}
        self.vocabulary = next(folder.glob("vocabulary.*"))
        # Without an abbreviation in them, as they are no part of NLTK: nothing is fetched.
        tables = place / "nltk_data" / "tokenizers" / "punkt_tab" / "english"
        tables.mkdir(parents=True)
        for name in TABLES:
            (tables / name).touch()

    def trained(self, name: str) -> tuple[list[Done], str]:
        """The steps that a project takes, and what was chosen in them."""
        command = ["command", "load-vocab", "--language", self.language, "subjects", str(self.vocabulary)]
        for where in ("full", "part") if name in ("tuned", "neural") else ("full",):
            self.step(where, "tfidf", *command)
        if name not in ("simple", "tuned", "neural"):
            return [self.train("full", name, "train")], ""
        sources = ("bonsai", "mllm")
        steps = [self.train("full", source, "train") for source in sources]
        if name == "simple":
            return steps, ""
        steps += [self.train("part", source, "sources") for source in sources]
        found, weights = self.tuned()
        if name == "tuned":
            return [*steps, found], weights
        self.settings["neural"]["sources"] = weights
        epochs = max(EPOCHS, key=self.tried)
        self.settings["neural"]["epochs"] = epochs
        steps.append(self.train("part", "neural", "ensembles"))
        copied = (self.place / where / "projects" / "neural" for where in ("part", "full"))
        shutil.copytree(*copied, ignore=shutil.ignore_patterns("*.mdb"))
        return steps, f"epochs={epochs}"

    def tuned(self) -> tuple[Done, str]:
        """Annif's own search for the weights of a simple ensemble, on the records kept for ensembles."""
        command = ["command", "hyperopt", "--trials", str(TRIALS), "--jobs", "1", "--metric", "NDCG@10"]
        done = self.step("part", "tuned", *command, "tuned", str(self.folder / "ensembles.tsv"))
        weights = re.search(r"^sources=(.*)$", done.printed, re.M)[1]
        self.settings["tuned"]["sources"] = weights
        return done, weights

    def tried(self, epochs: int) -> float:
        """nDCG@10 of a neural ensemble on one in five of its records, after learning from the others."""
        name = f"neural{epochs}"
        self.settings[name] = {**self.settings["neural"], "epochs": epochs}
        self.train("part", name, "learn")
        return self.suggest("part", name, "choose")[1].answer["annif"]["NDCG@10"]

    def train(self, where: str, project: str, part: str) -> Done:
        command = ["command", "train", "--jobs", "1", project, str(self.folder / f"{part}.tsv")]
        return self.step(where, project, *command)

    def suggest(self, where: str, project: str, part: str) -> tuple[Path, Done]:
        out = self.place / where / f"{project}.npz"
        return out, self.step(where, project, "suggest", project, str(self.folder / f"{part}.tsv"), str(out))

    def step(self, where: str, project: str, *command: str) -> Done:
        file = self.place / where / f"{project}.cfg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.configuration(project))
        places = {"ANNIF_DATADIR": file.parent, "ANNIF_PROJECTS": file, "NLTK_DATA": self.place / "nltk_data"}
        return run([sys.executable, str(STEP), *command], {key: str(path) for key, path in places.items()})

    def configuration(self, project: str) -> str:
        """The text of projects.cfg for a project and its sources."""
        sources = self.settings[project].get("sources", "")
        sections = []
        for name in (project, *(source.partition(":")[0] for source in sources.split(",") if source)):
            settings = {"name": name, "language": self.language, "vocab": "subjects", **self.settings[name]}
            if settings["backend"] not in ("ensemble", "nn_ensemble"):
                settings["analyzer"] = f"snowball({STEMMERS[self.language]})"
            sections.append(f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in settings.items()))
        return "\n".join(sections)


def run(command: list[str], variables: dict[str, str]) -> Done:
    """Run a step.

    Raises
    ------
    RuntimeError
        With the last line that the process wrote.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        environment = {**os.environ, **ENVIRONMENT, **variables}
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=errors
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        text = out.read().strip()
        if process.returncode != 0:
            told = (text + "\n" + errors.read()).strip().splitlines()
            raise RuntimeError(f"{' '.join(command[2:4])} ended with {process.returncode}: {told[-1][-200:]}")
    last = text.rpartition("\n")[2]
    answer = json.loads(last) if last.startswith("{") else {}
    return Done(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text, answer)
