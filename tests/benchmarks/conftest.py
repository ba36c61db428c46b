"""Scripts of `benchmarks/` on arguments that they refuse."""

import importlib

import pytest


@pytest.fixture
def refused(called):
    """What a script says on these arguments, as it ends with 2."""

    def run(script: str, *arguments: object) -> str:
        main = importlib.import_module(script).main
        code, out, said = called(main, f"{script}.py", *arguments)
        assert (code, out) == (2, "")
        return said

    return run
