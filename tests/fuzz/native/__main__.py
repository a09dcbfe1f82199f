"""Compile harnesses: ``python -m fuzz.native FOLDER [HARNESS ...]``."""

import sys
from pathlib import Path

from fuzz.native import build

for harness in sys.argv[2:]:
    build(harness, Path(sys.argv[1]))
