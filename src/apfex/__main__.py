"""``python -m apfex``, also as a worker of ``torchrun``."""

import sys

from apfex.cli import main

if __name__ == "__main__":
    sys.exit(main())
