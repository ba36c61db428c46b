"""Scripts of `benchmarks/` on arguments that they refuse."""

import importlib

import pytest


@pytest.fixture
def refused(monkeypatch, capsys):
    """What a script says on these arguments, as it ends with 2."""

    def run(script: str, *arguments: object) -> str:
        monkeypatch.setattr("sys.argv", [f"{script}.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            importlib.import_module(script).main()
        assert stop.value.code == 2
        said = capsys.readouterr()
        assert not said.out
        return said.err

    return run
