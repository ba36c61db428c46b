"""Data flows to the right only: who may import whom (see CONTRIBUTING.md)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "puicl_config": set(),
    "shard_io": {"puicl_config"},
    "prior_gen": {"puicl_config", "shard_io"},
    "puicl_model": {"puicl_config"},
    "trainer": {"puicl_config", "shard_io", "puicl_model"},
    "pu_bench": {"puicl_config", "puicl_model", "shard_io"},
    "puicl_cli": {"puicl_config", "shard_io", "prior_gen", "puicl_model", "trainer", "pu_bench"},
}
# From these rooms others take only what the package itself names, its public interface.
PUBLIC_ONLY = {
    "trainer": {"shard_io"},
    "pu_bench": {"puicl_model", "shard_io"},
    "puicl_cli": {"trainer", "prior_gen", "pu_bench"},
}


def imports_of(path: Path) -> set[str]:
    """Every module a file imports, wherever in the file the import stands."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            names.add(node.module)
    return names


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_the_rooms_it_may_know(room):
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    for file in files:
        ours = {name for name in imports_of(file) if name.split(".")[0] in MAY_IMPORT}
        strangers = {name for name in ours if name.split(".")[0] not in {room, *MAY_IMPORT[room]}}
        assert not strangers, f"{file.relative_to(ROOT)} imports {strangers}"
        private = {name for name in ours if "." in name and name.split(".")[0] != room}
        private = {name for name in private if name.split(".")[0] in PUBLIC_ONLY.get(room, set())}
        assert not private, f"{file.relative_to(ROOT)} reaches into {private}"


def test_the_walls_list_names_every_room_there_is():
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms == set(MAY_IMPORT)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_rooms_types_reach_whoever_installs_it(room):
    assert (ROOT / room / "py.typed").is_file()  # without it a type checker takes all for Any


@pytest.mark.parametrize(
    ("code", "strangers"),
    [
        ("import prior_gen", {"torch"}),
        ("import shard_io", {"torch"}),
        # scikit-learn and SciPy would double the time a process takes to start, SymPy (which
        # PyTorch's own way to layers that are not drawn yet asks for) that of a first small fit.
        (
            "import trainer; from puicl_model import PUICL, ModelConfig; PUICL(ModelConfig())",
            {"prior_gen", "sklearn", "scipy", "sympy"},
        ),
    ],
)
def test_nothing_is_loaded_that_there_is_no_use_for(code, strangers):
    told = f"{code}; import sys; print(*sorted({strangers!r} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", told], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == []
