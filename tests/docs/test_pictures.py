"""What the documents show is there: every picture and every document they link to."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_pictures_and_links_of_a_document_are_there(document):
    targets = _LINK.findall(document.read_text(encoding="utf-8"))
    gone = [t for t in targets if "://" not in t and not (document.parent / t).exists()]
    assert not gone


def test_the_guides_pictures_are_shown_and_small():
    shown = _LINK.findall((ROOT / "docs" / "user_guide.md").read_text(encoding="utf-8"))
    pictures = sorted((ROOT / "docs" / "images" / "guide").glob("*.png"))
    assert {path.relative_to(ROOT / "docs").as_posix() for path in pictures} <= set(shown)
    assert len(pictures) == 3
    assert all(path.stat().st_size < 200_000 for path in pictures)
