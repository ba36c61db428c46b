"""`torchrun trainer/main.py`: a shim, so that a checkout trains without being installed."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python put this folder on the path; the rooms lie one above it.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

    from trainer.cli import main

    main()
