"""`torchrun trainer/main.py`: a shim that trains from a checkout without installing it."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python put this folder on the path, but the packages are in its parent.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

    from trainer.cli import main

    main()
