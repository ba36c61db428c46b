"""Compiled loops where there is nowhere to keep what was compiled."""

import pkgutil
import re
from pathlib import Path

import prior_gen

# All modules of the generator, as in an installation that is read only, without a home.
NOWHERE_TO_KEEP = """
import importlib, pkgutil, sys
import numpy as np
from numba.core import caching

caching.CodeLibraryCacheImpl._locator_classes = []
caching.CompileResultCacheImpl._locator_classes = []
for name in sys.argv[1:]:
    importlib.import_module(name)

from prior_gen.half import to_half

x = np.linspace(-3, 3, 100, dtype=np.float32)
assert (to_half(x) == x.astype(np.float16)).all()
"""


def test_the_generator_starts_where_no_folder_can_be_written_to(run_command):
    walked = pkgutil.walk_packages(prior_gen.__path__, "prior_gen.")
    names = [module.name for module in walked if not module.name.endswith("__main__")]
    assert "prior_gen.extensions.principal_axes" in names
    run_command("-c", NOWHERE_TO_KEEP, *names)


def test_every_compiled_loop_is_compiled_with_the_same_settings():
    root = Path(prior_gen.__path__[0])
    own = [path.name for path in root.rglob("*.py") if re.search(r"\bnjit\b", path.read_text())]
    assert own == ["jitted.py"]
