"""What the documents show is there: every picture and every document they link to."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (".", "docs", "docs/weights", "shards", "pretraining")
DOCUMENTS = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.md"))
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", re.DOTALL)
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def links_of(document: Path) -> list[tuple[Path, str]]:
    """The files of this repository that a document links to, and the place there, or ""."""
    found = _LINK.findall(document.read_text(encoding="utf-8"))
    return [
        (document.parent / target if target else document, anchor)
        for target, anchor in found
        if "://" not in target
    ]


def anchors_of(document: Path) -> set[str]:
    """What a heading is linked by: lower case, hyphens for spaces, no other signs."""
    headings = _HEADING.findall(document.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_pictures_and_links_of_a_document_are_there(document):
    links = links_of(document)
    assert not [target for target, _ in links if not target.exists()]
    assert not [
        (target.name, anchor)
        for target, anchor in links
        if anchor and target.suffix == ".md" and anchor not in anchors_of(target)
    ]


def test_every_document_with_links_is_looked_at():
    assert {"README.md", "weights.md"} <= {path.name for path in DOCUMENTS}
    assert {path.parent.name for path in DOCUMENTS} >= {"docs", "shards", "pretraining"}
    assert any(anchor for document in DOCUMENTS for _, anchor in links_of(document))


def test_the_guides_pictures_are_shown_and_small():
    shown = {target for target, _ in links_of(ROOT / "docs" / "user_guide.md")}
    pictures = sorted((ROOT / "docs" / "images" / "guide").glob("*.png"))
    assert {*pictures} <= shown
    assert len(pictures) == 3
    assert all(path.stat().st_size < 200_000 for path in pictures)
