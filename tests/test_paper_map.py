"""docs/paper_map.md points at code and tests that exist."""

import ast
import re
from pathlib import Path

import pytest

from puicl_config import load_config

ROOT = Path(__file__).resolve().parent.parent
MAP = (ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8")
REFERENCES = sorted(set(re.findall(r"`([\w./]+\.py)::([\w.]+)`", MAP)))
KEYS = sorted(set(re.findall(r"`((?:prior|shards|model|train)\.[a-z0-9_.]+)`", MAP)))


def names_defined(path: Path) -> set[str]:
    """Functions, classes, methods (`Class.method`), fields and constants of a file."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = [node]
        if isinstance(node, ast.ClassDef):
            targets += node.body
        for target in targets:
            prefix = f"{node.name}." if target is not node else ""
            if isinstance(target, ast.FunctionDef | ast.ClassDef):
                names.add(prefix + target.name)
            elif isinstance(target, ast.Assign | ast.AnnAssign):
                for name in ast.walk(target):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                        names.add(prefix + name.id)
    return names


@pytest.mark.parametrize(("file", "name"), REFERENCES)
def test_a_named_function_or_test_exists(file, name):
    paths = [ROOT / file] if (ROOT / file).exists() else list((ROOT / "tests").rglob(file))
    assert len(paths) == 1, f"{file}: {paths}"
    assert name in names_defined(paths[0])


@pytest.mark.parametrize("key", KEYS)
def test_a_named_config_key_exists(key):
    value = load_config("paper").model_dump()
    for step in key.split("."):
        value = value[step]


def test_the_map_is_read_at_all():
    assert len(REFERENCES) > 100
    assert len(KEYS) > 30
