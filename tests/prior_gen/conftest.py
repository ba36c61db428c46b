"""What tests of the preview share."""

import pytest


@pytest.fixture(scope="module")
def few_trees():
    """Most of a page's time goes to growing them, and how many there are matters to no test."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("prior_gen.preview.difficulty.TREES", 4)
        yield


@pytest.fixture
def unrendered(monkeypatch):
    """Figures are made and no pixels of them, for tests that look at numbers and the page."""
    monkeypatch.setattr("prior_gen.preview.style.as_png", lambda *_: b"")
