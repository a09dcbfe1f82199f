"""`python -m metarank`."""

import sys

from metarank.cli import main

if __name__ == "__main__":
    sys.exit(main())
