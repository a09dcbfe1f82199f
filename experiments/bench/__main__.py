"""The bench: cells of all studies, then their pages, from one run of one commit.

python experiments/bench [--study thousands] [--sets pydocs] [--setup] [--keep-peers] [--of COMMIT]

A run that was stopped goes on where it stopped, as long as the commit is the same. A page of all sets of a
study, from a tree that is clean, is written to `experiments/`; any other to `build/bench/part/`. A page has
two parts, that of the short runs and that of the long ones; each is written whole, and the other stays.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

import excerpts
import page_parts
import peer_environments
import sets
from cells import HERE, Bench, keep_peers
from declared import Lines, Study

ROOT = peer_environments.ROOT
STUDIES = tuple(sorted(path.stem for path in (HERE / "studies").glob("[a-z]*.py")))
LONG = "# The long runs\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--study", default=",".join(STUDIES), help=f"among {', '.join(STUDIES)}")
    parser.add_argument("--sets", help="run these alone")
    parser.add_argument("--large", action="store_true", help="the long studies instead of the others")
    parser.add_argument("--again", action="store_true", help="run cells whose lines are kept, too")
    parser.add_argument("--setup", action="store_true", help="make the peers' environments, and no more")
    parser.add_argument("--of", help="write the pages of the run of this commit again; nothing runs")
    parser.add_argument("--keep-peers", action="store_true", help="keep the lines of peers for later runs")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "bench", help="of what is made and kept"
    )
    options = parser.parse_args(arguments)
    if options.setup:
        for name in peer_environments.ENVIRONMENTS:
            print(f"{name} {peer_environments.ENVIRONMENTS[name].version}", file=sys.stderr, flush=True)
            peer_environments.make(name, options.folder / "environments")
        return 0
    wanted = options.study.split(",")
    if unknown := set(wanted) - set(STUDIES):
        parser.error(f"--study must be among {', '.join(STUDIES)}, got {', '.join(sorted(unknown))}")
    modules = [importlib.import_module(f"studies.{name}") for name in wanted]
    found = [getattr(module, name, None) for module in modules for name in ("STUDY", "LARGE")]
    studies = [study for study in found if study and study.large is options.large]
    named = sorted({name for study in studies for name in study.sets})
    chosen = options.sets.split(",") if options.sets else named
    if unknown := set(chosen) - set(named):
        parser.error(f"--sets must be among {', '.join(named)}, got {', '.join(sorted(unknown))}")
    commit, clean = state_of_sources()
    bench = Bench(options.folder, options.of or (commit if clean else f"{commit}-changed"))
    cells = [cell for study in studies for cell in study.cells(chosen)]
    lines = bench.carry_out(cells, again=options.again, run=not options.of)
    if options.keep_peers:
        keep_peers([line for line in lines if line["peer"]])
    whole = clean and not options.sets
    for study in studies:
        command = f"make bench{'-large' if study.large else ''}"
        command += "" if set(wanted) == set(STUDIES) else f" STUDY={study.name.removesuffix('_large')}"
        write(study, bench, chosen, command, ROOT / "experiments" if whole else options.folder / "part")
    if whole:
        for document in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
            document.write_text(excerpts.filled(document.read_text(), ROOT / "experiments"))
    return 0


def state_of_sources() -> tuple[str, bool]:
    """The commit, and whether all that is tracked is as it says."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", ROOT, *arguments], check=True, capture_output=True, text=True
        ).stdout

    return git("rev-parse", "HEAD").strip(), not git("status", "--porcelain", "metarank", "experiments/bench")


def write(study: Study, bench: Bench, chosen: list[str], command: str, folder: Path) -> None:
    described = {name: sets.described(bench.sets / name) for name in study.sets if name in chosen}
    kept = [bench.lines[cell.key] for cell in study.cells(chosen)]
    lines = Lines(kept, described, bench.run, bench.sets)
    text = "\n\n".join(
        [study.page(lines), "## How it was made", page_parts.provenance(lines, bench.commit, command)]
    )
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{study.name.removesuffix('_large')}.md"
    short, _, long = page.read_text().partition(LONG) if page.is_file() else ("", "", "")
    if study.name.endswith("_large"):
        long = text.partition("\n")[2]
    else:
        short = text
    parts = [short.strip("\n"), *([LONG + long.rstrip("\n")] if long else [])]
    page.write_text("\n\n".join(parts) + "\n")
    print(f"written: {page}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
