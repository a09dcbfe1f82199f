"""Before anything brings an OpenMP runtime: its idle threads must sleep, not spin."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
