"""``python -m apfex.cli``."""

import sys

from apfex.cli._main import main

if __name__ == "__main__":
    sys.exit(main())
