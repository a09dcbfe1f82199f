"""Annif's projects and metarank on one set: trained and asked, one process a step.

Annif has two data folders. In `part` the sources of ensembles are trained without the records kept for
ensembles, on which these are trained: scores of records that a source has learned by heart teach an ensemble
to trust it too much. In `full` every project but the neural ensemble is trained on all training records, and
a copy of that ensemble from `part` stands beside them.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sets import Collection
from stages import Done, Failed, kept, log

_HERE = Path(__file__).parent
METARANK = _HERE.parents[1] / "metarank"
_WORDS = {"min_df": 2, "ngram": 2}
_BONSAI = {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}
# Settings of projects.cfg beside name, language, vocabulary and analyzer, as Annif's tutorial has them.
PROJECTS: dict[str, dict[str, Any]] = {
    "tfidf": {"backend": "tfidf"},
    "parabel": {"backend": "omikuji", **_WORDS},
    "bonsai": {"backend": "omikuji", **_BONSAI, **_WORDS},
    "mllm": {"backend": "mllm"},
    "simple": {"backend": "ensemble", "sources": "bonsai:2,mllm:1"},
    "tuned": {"backend": "ensemble", "sources": "bonsai:2,mllm:1"},
    "neural": {"backend": "nn_ensemble"},
    "metarank": {"backend": "metarank"},
}
# Epochs that are tried for the neural ensemble; its own default is the first.
EPOCHS = (10, 5, 20)
TRIALS = 30


@dataclass(frozen=True)
class Measured:
    """A system on the test records: its suggestions, CPU seconds with its parts, peak MiB of one of its
    processes, and Annif's own figures."""

    suggestions: Path
    train_cpu: float
    suggest_cpu: float
    memory: float
    annif: dict[str, float] | None = None
    said: str = ""


class Bench:
    """The systems on one set; `systems` are measured by name."""

    def __init__(self, of: Collection, folder: Path, python: Path, version: str) -> None:
        self.of, self.folder, self.python, self.version = of, folder, python, version
        self.settings = {name: dict(settings) for name, settings in PROJECTS.items()}
        self.trained: dict[tuple[str, str], Done] = {}
        self.chosen: dict[str, str] = {}

    # --- what is measured -----------------------------------------------------------

    def measured(self) -> dict[str, Measured]:
        """Every system that can be run here, peers first; what fails is told and left out."""
        found: dict[str, Measured] = {}
        for place in ("full", "part"):
            command = ["load-vocab", "-p", str(self._file(place, "tfidf")), "--language", self.of.language]
            command += ["subjects", str(self.of.vocabulary)]
            self._annif(place, "vocabulary", command, [], self.folder / place / "vocabs")
        for name in PROJECTS:
            self._attempt(found, name, self._project)
        self._attempt(found, "alone", self._alone)
        return found

    def _attempt(self, found: dict[str, Measured], name: str, how: Any) -> None:
        try:
            found[name] = how(name)
        except Failed as error:
            log(f"{self.of.name}: {name} is left out: {error}")

    def _project(self, name: str) -> Measured:
        sources = self._sources(name)
        if name == "neural":
            cost = self._ensemble(name)
        elif name == "tuned":
            cost = self._tune_weights()
        elif name == "simple":
            cost = 0.0
        else:
            self.train("full", name, "train")
            if name in ("bonsai", "mllm"):
                self.train("part", name, "sources")
            cost = self.trained["full", name].cpu
        sources = self._sources(name)
        if lacking := [source for source in sources if ("full", source) not in self.trained]:
            raise Failed(f"it needs {', '.join(lacking)}")
        cost += sum(self.trained["full", source].cpu for source in sources)
        out, done = self.suggest("full", name, "test")
        steps = [
            done,
            *(self.trained["full", part] for part in (name, *sources) if ("full", part) in self.trained),
        ]
        memory = max(step.memory for step in steps)
        said = self.chosen.get(name, "")
        return Measured(out, cost, done.answer["CPU s"], memory, done.answer["annif"], said)

    def _parts(self, name: str) -> float:
        """CPU seconds of the sources without the records kept for ensembles."""
        lacking = [source for source in self._sources(name) if ("part", source) not in self.trained]
        if lacking:
            raise Failed(f"it needs {', '.join(lacking)}")
        return sum(self.trained["part", source].cpu for source in self._sources(name))

    def _tune_weights(self) -> float:
        """Annif's own search for the weights of a simple ensemble, on the records kept for ensembles."""
        cost = self._parts("tuned")
        command = ["hyperopt", "-p", str(self._file("part", "tuned")), "--trials", str(TRIALS), "--jobs", "1"]
        command += ["--metric", "NDCG@10", "tuned", str(self.of.corpus("ensembles"))]
        done = self._annif("part", "hyperopt-tuned", command, self._reads("part", "tuned", "ensembles"))
        weights = re.search(r"^sources=(.*)$", done.printed, re.M)[1]
        self.settings["tuned"]["sources"] = weights
        self.chosen["tuned"] = weights
        return cost + done.cpu

    def _ensemble(self, name: str) -> float:
        """Train the neural ensemble in `part`, and copy it to `full`."""
        self.settings[name]["sources"] = self.settings["tuned"]["sources"]
        cost = self._parts(name)
        self._choose_epochs(name)
        done = self.train("part", name, "ensembles")
        copy, mark = self.folder / "full" / "projects" / name, self.folder / "full" / f"{name}.copied"
        if not mark.exists() or mark.read_text() != done.digest or not copy.is_dir():
            shutil.rmtree(copy, ignore_errors=True)
            copy.parent.mkdir(exist_ok=True)
            ignored = shutil.ignore_patterns("*.mdb")
            shutil.copytree(self.folder / "part" / "projects" / name, copy, ignore=ignored)
            mark.write_text(done.digest)
        self.trained["full", name] = done
        return cost + done.cpu

    def _choose_epochs(self, name: str) -> None:
        """By nDCG@10 on one in five of the ensembles' records, after learning from the others."""
        ndcg = {}
        for epochs in EPOCHS:
            tried = f"{name}{epochs}"
            self.settings[tried] = {**self.settings[name], "epochs": epochs}
            self.train("part", tried, "learn")
            _, done = self.suggest("part", tried, "choose")
            ndcg[epochs] = done.answer["annif"]["NDCG@10"]
        best = max(ndcg, key=ndcg.__getitem__)
        self.settings[name]["epochs"] = best
        self.chosen[name] = f"epochs={best}"

    def _alone(self, name: str) -> Measured:
        out = self.folder / "alone.npz"
        command = [sys.executable, str(_HERE / "alone.py"), str(self.of.names)]
        command += [str(self.of.corpus("train")), str(self.of.corpus("test")), self.of.language, str(out)]
        reads = [self._digest("train"), self._digest("test"), self._digest_of(self.of.names)]
        reads += [digest_of_metarank(), self._digest_of(_HERE / "alone.py")]
        done = kept(self.folder / "alone.json", command, reads=reads, output=out)
        answer = done.answer
        said = "; ".join(answer["choices"])
        return Measured(out, answer["train CPU s"], answer["CPU s"], done.memory, None, said)

    # --- one step of Annif -----------------------------------------------------------

    def train(self, place: str, project: str, part: str) -> Done:
        command = ["train", "-p", str(self._file(place, project)), "--jobs", "1", project]
        command.append(str(self.of.corpus(part)))
        output = self.folder / place / "projects" / project
        reads = self._reads(place, project, part)
        done = self._annif(place, f"train-{project}", command, reads, output, self._backends(project))
        self.trained[place, project] = done
        return done

    def suggest(self, place: str, project: str, part: str) -> tuple[Path, Done]:
        out = self.folder / place / f"{project}.npz"
        command = ["suggest", project, str(self.of.corpus(part)), str(out)]
        reads = self._reads(place, project, part)
        if (place, project) in self.trained:
            reads.append(self.trained[place, project].digest)
        environment = {"ANNIF_PROJECTS": str(self._file(place, project)), **self._backends(project)}
        return out, self._within(place, f"suggest-{project}", command, reads, out, environment)

    def _annif(
        self,
        place: str,
        name: str,
        command: list[str],
        reads: list[str],
        output: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> Done:
        return self._within(place, name, ["annif", *command], reads, output, environment or {})

    def _within(
        self,
        place: str,
        name: str,
        command: list[str],
        reads: list[str],
        output: Path | None,
        environment: dict[str, str],
    ) -> Done:
        return kept(
            self.folder / place / f"{name}.json",
            [str(self.python), str(_HERE / "within_annif.py"), *command],
            reads=[self._digest_of(self.of.vocabulary), self.version, *reads],
            environment={"ANNIF_DATADIR": str(self.folder / place), **environment},
            output=output,
        )

    # --- what a step reads -----------------------------------------------------------

    def _sources(self, project: str) -> list[str]:
        sources = self.settings[project].get("sources", "")
        return [source.partition(":")[0] for source in sources.split(",") if source]

    def _backends(self, project: str) -> dict[str, str]:
        """The variable by which metarank's backend is registered, where a project needs it."""
        return {"METARANK_BACKEND": "1"} if self.settings[project]["backend"] == "metarank" else {}

    def _configuration(self, project: str) -> str:
        """The text of projects.cfg for a project and its sources."""
        sections = []
        for name in (project, *self._sources(project)):
            settings = {
                "name": name,
                "language": self.of.language,
                "vocab": "subjects",
                **self.settings[name],
            }
            if settings["backend"] not in ("ensemble", "nn_ensemble"):
                settings["analyzer"] = f"snowball({self.of.stemmer})"
            lines = "".join(f"{key}={value}\n" for key, value in settings.items())
            sections.append(f"[{name}]\n{lines}")
        return "\n".join(sections)

    def _file(self, place: str, project: str) -> Path:
        file = self.folder / place / f"{project}.cfg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._configuration(project))
        return file

    def _reads(self, place: str, project: str, part: str) -> list[str]:
        reads = [self._digest(part), self._configuration(project)]
        reads += [self.trained[place, source].digest for source in self._sources(project)]
        return [*reads, digest_of_metarank()] if self._backends(project) else reads

    def _digest(self, part: str) -> str:
        return self._digest_of(self.of.corpus(part))

    def _digest_of(self, file: Path) -> str:
        return hashlib.sha256(file.read_bytes()).hexdigest()


def digest_of_metarank(
    folder: Path = METARANK, kinds: tuple[str, ...] = (".py", ".cpp", ".hpp", ".h")
) -> str:
    """Of the sources that a fit or an answer may pass through."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in kinds and "serve" not in path.parts:
            found.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return found.hexdigest()
