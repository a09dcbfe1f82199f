"""The same fits and answers on arm64, emulated, as on this x86-64: `make arm64`.

    python tests/emulated/arm64.py [--work DIR] [--cpu NAME]

1. Debian's packages of CPython 3.11 for arm64 by debootstrap, into DIR/root; they are unpacked only: nothing
   of them runs before qemu-user runs their Python.
2. Into DIR/site the dependencies' wheels for arm64, in the versions of constraints.txt, and metarank's, which
   the cross compiler builds from this folder.
3. `fits.py` here and there; then a part of docs/platforms.md is written anew: how many fits are equal, and
   of the others the first function that returned other bytes, and how far apart the scores are.

It fails where a saved model answers otherwise, where a fit of the core alone does (`wheels/golden.json`) or
where a fit differs that the page does not name. It takes a quarter of an hour and Debian's packages:

    apt-get install debootstrap qemu-user-static g++-aarch64-linux-gnu

debootstrap wants to be root. What is in DIR already is used again, but for the wheel of metarank.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "platforms.md"
TOOLS = ("debootstrap", "qemu-aarch64-static", "aarch64-linux-gnu-g++", "dpkg-deb")
PACKAGES = "python3,libpython3.11-dev,libgomp1,libstdc++6"
DEPENDENCIES = (
    "numpy scipy scikit-learn faiss-cpu lightgbm threadpoolctl tqdm jinja2 pystemmer pandas tokenizers"
)
SUFFIX = ".cpython-311-aarch64-linux-gnu.so"
# One thread: BLAS and LightGBM divide sums by threads. Hashes: sets are in one order here and there.
SETTINGS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
WRITTEN = re.compile(r"(?<=<!-- written by tests/emulated/arm64.py -->\n).*?(?=<!-- end -->)", re.DOTALL)
OTHER = re.compile(r"^\| ([^|]*) \| (?:[^|]* differ|not fitted: torch) \|", re.MULTILINE)


def run(*command: object, **settings: str) -> None:
    words = [Path(str(part)).name if i == 0 else str(part) for i, part in enumerate(command)]
    print("+", *words, flush=True)
    subprocess.run([str(part) for part in command], env=os.environ | settings, check=True, cwd=ROOT)


def make_root(root: Path) -> None:
    if (root / "usr/bin/python3.11").exists():
        return
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(parents=True, exist_ok=True)
    options = "--arch=arm64", "--foreign", "--variant=minbase", f"--include={PACKAGES}"
    run("debootstrap", *options, "bookworm", root)
    for package in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)


def install(site: Path) -> None:
    wanted = (ROOT / "constraints.txt").read_text(encoding="utf-8") + DEPENDENCIES
    mark = site / ".constraints"
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(site, ignore_errors=True)
    kinds = [f"manylinux_2_{minor}_aarch64" for minor in (28, 27, 24, 17)] + ["manylinux2014_aarch64"]
    platforms = [part for kind in kinds for part in ("--platform", kind)]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--only-binary", ":all:", "--python-version", "3.11"]
    constraints = str(ROOT / "constraints.txt")
    run(*pip, *platforms, "--target", site, *DEPENDENCIES.split(), PIP_CONSTRAINT=constraints)
    mark.write_text(wanted, encoding="utf-8")


def build(work: Path, root: Path, site: Path) -> None:
    """The wheel, for the Python in the root, and unpacked beside its dependencies."""
    toolchain = work / "toolchain.cmake"
    toolchain.write_text(
        "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\n"
        "set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)\n",
        encoding="utf-8",
    )
    wheels = work / "wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    defined = {"Python_INCLUDE_DIR": root / "usr/include/python3.11", "NB_SUFFIX": SUFFIX}
    run(
        *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", ROOT, "-w", wheels),
        *("-C", f"build-dir={work / 'core'}"),
        *(part for name, value in defined.items() for part in ("-C", f"cmake.define.{name}={value}")),
        CMAKE_TOOLCHAIN_FILE=str(toolchain),
        # Behind the compiler's own folders: of the root only what Debian keeps apart by architecture.
        CXXFLAGS=f"-g0 -idirafter {root / 'usr/include'}",
        _PYTHON_HOST_PLATFORM="linux-aarch64",
        SETUPTOOLS_EXT_SUFFIX=SUFFIX,
    )
    (wheel,) = wheels.glob("*-linux_aarch64.whl")
    shutil.rmtree(site / "metarank", ignore_errors=True)
    shutil.unpack_archive(wheel, site, "zip")
    assert (site / "metarank" / f"_core{SUFFIX}").exists()


def said_by(folder: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((folder / "said.json").read_text(encoding="utf-8"))
    return said


def other(here: dict[str, Any], there: dict[str, Any]) -> list[str]:
    return [name for name in here | there if here.get(name) != there.get(name)]


def far_apart(here: Path, there: Path) -> tuple[str, str]:
    """Whether the labels are the same in order, and the greatest difference of scores, by the greatest."""
    a, b = np.load(here), np.load(there)
    same, most = True, 0.0
    for name in a.files:
        if name.split("/")[0] not in ("ranking", "shortlist", "columns", "scores", "probabilities"):
            continue
        if a[name].shape != b[name].shape or (
            a[name].dtype.kind in "iu" and not np.array_equal(a[name], b[name])
        ):
            same = False
        elif a[name].dtype.kind == "f" and a[name].size:
            finite = np.isfinite(a[name])
            gap = np.abs(a[name][finite].astype(np.float64) - b[name][finite]).max(initial=0.0)
            most = max(most, float(gap / (np.abs(a[name][finite]).max(initial=0.0) or 1.0)))
    return "equal" if same else "**other**", f"{most:.0e}" if most else "0"


def compared(work: Path) -> tuple[list[str], list[str]]:
    """Lines of the page: how many fits are equal, and the others in a table; names of the equal ones."""
    here, there = (said_by(work / name)["fits"] for name in ("here", "there"))
    titles = "Fit", "Files and answers", "First function that gave other bytes", "Labels", "Scores"
    lines, equal = [f"| {' | '.join(titles)} |", "|---|---|---|---|---|"], []
    for name, x in here.items():
        y = there.get(name)
        if y is None:
            lines.append(f"| {name} | not fitted: torch | | | |")
            continue
        files, answers = other(x["files"], y["files"]), other(x["answers"], y["answers"])
        first = next((a[0] for a, b in zip(x["returns"], y["returns"]) if a != b), "")
        first = f"`{first.replace('.<locals>', '')}`" if first else ""
        if files or answers:
            stem = re.sub(r"\W+", "-", name) + ".npz"
            labels, scores = far_apart(work / "here" / stem, work / "there" / stem)
            held = f"{len(files)} of {len(x['files'])} files, {len(answers)} of {len(x['answers'])} answers"
            held += " differ"
            lines.append(f"| {name} | {held} | {first} | {labels} | {scores} |")
        else:
            equal.append(name)
    return [f"{len(equal)} fits are equal in every byte. The others:", "", *lines], equal


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "arm64")
    parser.add_argument("--cpu", default="neoverse-n1", help="as qemu-aarch64 -cpu help lists them")
    asked = parser.parse_args()
    work = asked.work.absolute()
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        sys.exit(f"{', '.join(missing)}: apt-get install debootstrap qemu-user-static g++-aarch64-linux-gnu")
    if platform.machine() != "x86_64" or sys.version_info[:2] != (3, 11):
        sys.exit("arm64 is compared with CPython 3.11 on x86-64")
    root, site = work / "root", work / "site"
    make_root(root)
    install(site)
    build(work, root, site)
    for name in ("here", "there"):
        shutil.rmtree(work / name, ignore_errors=True)
    # Seen through a link, the tests lie beside no metarank but the wheel's.
    tests = work / "tests"
    tests.unlink(missing_ok=True)
    tests.symlink_to(ROOT / "tests")
    run(sys.executable, ROOT / "tests/emulated/fits.py", work / "here", **SETTINGS)
    python = ("qemu-aarch64-static", "-cpu", asked.cpu, "-L", root, root / "usr/bin/python3.11")
    run(*python, tests / "emulated/fits.py", work / "there", PYTHONPATH=str(site), **SETTINGS)

    lines, equal = compared(work)
    page = PAGE.read_text(encoding="utf-8")
    known = OTHER.findall(page)
    PAGE.write_text(WRITTEN.sub(lambda _: "\n".join(["", *lines, "", ""]), page), encoding="utf-8")
    print("\n".join(lines))
    here, there = (said_by(work / name) for name in ("here", "there"))
    golden = json.loads((ROOT / "tests/wheels/golden.json").read_text(encoding="utf-8"))
    assert here["saved before"] == there["saved before"] > 0
    wrong = [f"fit of the core: {name}" for name in other(golden, there["golden"])]
    for name in here["saved"] | there["saved"]:
        answers = other(here["saved"].get(name, {}), there["saved"].get(name, {}))
        wrong += [f"saved model {name}: {', '.join(answers)}"] if answers else []
    wrong += [f"fit that was equal: {name}" for name in OTHER.findall("\n".join(lines)) if name not in known]
    print(
        "\n".join(wrong)
        or f"{len(here['saved'])} saved models answer the same bytes; {len(equal)} fits are equal"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
