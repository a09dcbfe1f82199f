"""`python -m metarank`."""

import sys

from metarank.apps.cli import main

if __name__ == "__main__":
    sys.exit(main())
