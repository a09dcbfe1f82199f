"""Build the wheels, from an sdist; audit, install and test each in empty environments: `make wheel`.

    python tests/wheels/run.py [--dist DIR]

One wheel for CPython 3.11 and one, for the stable ABI, for 3.12 and later, by the interpreters that are
found. What is built here runs where glibc is as new as here; the workflow builds in the images of
manylinux and musllinux, whose wheels run on older systems too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
LARGEST = 3 * 2**20
BUILD = {"CXXFLAGS": "-g0", "LDFLAGS": "-Wl,-s -Wl,--gc-sections -static-libstdc++ -static-libgcc"}


def run(*command: object, **settings: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def interpreters() -> dict[str, Path]:
    """Of each version from 3.11 on, one interpreter: of pyenv, or on the path."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    tried = [sys.executable, *sorted(pyenv.glob("versions/*/bin/python"))]
    tried += [found for minor in range(11, 20) if (found := shutil.which(f"python3.{minor}"))]
    found: dict[str, Path] = {}
    for path in tried:
        asked = subprocess.run(
            [path, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        version = asked.stdout.strip()
        if asked.returncode == 0 and version.startswith("3.") and int(version[2:]) >= 11:
            found.setdefault(version, Path(path))
    return dict(sorted(found.items(), key=lambda item: int(item[0][2:])))


def check_sdist(path: Path) -> None:
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    needed = {"LICENSE", "README.md", "pyproject.toml", "metarank/_core/CMakeLists.txt", "metarank/py.typed"}
    assert needed <= names, f"{path.name} lacks {sorted(needed - names)}"
    unwanted = [
        name for name in names if name.startswith(("tests/", "experiments/", ".ci", ".github", "dist/"))
    ]
    assert not unwanted, f"{path.name} holds {unwanted[:5]}"


def check_wheel(path: Path) -> str:
    """Its name, what it holds and its size, in a line."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    (core,) = [name for name in names if name.startswith("metarank/_core.") and not name.endswith(".pyi")]
    stable = "-abi3-" in path.name
    assert stable == ("-cp311-" not in path.name), path.name
    assert core.endswith(".abi3.so") == stable, f"{path.name} holds {core}"
    assert "metarank/_core.pyi" in names, f"{path.name} lacks the types of the core"
    assert any(name.endswith("/licenses/LICENSE") for name in names), f"{path.name} lacks LICENSE"
    assert not [name for name in names if name.endswith((".cpp", ".h", "CMakeLists.txt"))], path.name
    size = path.stat().st_size
    assert size < LARGEST, f"{path.name} has {size} bytes"
    return f"{path.name}: {size / 2**20:.2f} MiB, {Path(core).name}"


def installed(python: Path, wheel: Path, scratch: Path) -> str:
    """The wheel in an empty environment: what came with it, what the smoke test says; the examples."""
    environment = scratch / f"env-{python.parent.parent.name}"
    run(python, "-m", "venv", environment)
    inside, start = environment / "bin" / "python", time.perf_counter()
    run(inside, "-m", "pip", "install", "-q", "--only-binary", ":all:", wheel)
    seconds = time.perf_counter() - start
    run(inside, "-m", "pip", "check")
    files = [
        path for path in environment.rglob("site-packages/**/*") if path.is_file() and not path.is_symlink()
    ]
    files = [path for path in files if "/pip" not in str(path.relative_to(environment))]
    said = run(inside, "-W", "ignore", ROOT / "tests" / "wheels" / "smoke.py", OMP_NUM_THREADS="1").strip()
    run(inside, ROOT / "tests" / "wheels" / "examples.py", "readme")
    run(inside, "-m", "pip", "install", "-q", "--only-binary", ":all:", "pandas")
    run(inside, ROOT / "tests" / "wheels" / "examples.py", "frame")
    return f"{said}; installed in {seconds:.0f} s, {sum(p.stat().st_size for p in files) / 1e6:.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    dist = parser.parse_args().dist.absolute()
    found = interpreters()
    builders = [found["3.11"]] if "3.11" in found else []
    builders += [path for version, path in found.items() if version != "3.11"][:1]
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        run(sys.executable, "-m", "build", "--sdist", "--outdir", dist, ROOT)
        (sdist,) = dist.glob("*.tar.gz")
        check_sdist(sdist)
        print(f"{sdist.name}: {sdist.stat().st_size / 2**20:.2f} MiB", flush=True)
        for python in builders:
            plain = scratch / python.parent.parent.name
            run(python, "-m", "pip", "wheel", "-q", "--no-deps", sdist, "-w", plain, **BUILD)
            (wheel,) = plain.glob("*.whl")
            if sys.platform == "linux":
                run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", dist, wheel)
            else:
                shutil.copy(wheel, dist)
        wheels = sorted(dist.glob("*.whl"))
        for wheel in wheels:
            print(check_wheel(wheel), flush=True)
        for version, python in found.items():
            fits = [wheel for wheel in wheels if ("-cp311-" in wheel.name) == (version == "3.11")]
            if fits:
                print(installed(python, fits[0], scratch), flush=True)


if __name__ == "__main__":
    main()
