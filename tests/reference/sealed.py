"""Manifests that say something else, with a digest of their own: as another machine writes them."""

import json
from collections.abc import Callable
from pathlib import Path

from puicl_config import sha256_of


def write_sealed(path: Path, manifest: dict) -> None:
    """Write a manifest with the digest of its header."""
    header = {key: manifest[key] for key in manifest.keys() - {"parts", "header_digest"}}
    path.write_text(json.dumps({**manifest, "header_digest": sha256_of(header)}))


def change_manifest(folder: Path, change: Callable[[dict], object]) -> None:
    """Let `change` alter the manifest of a folder."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    write_sealed(path, manifest)
