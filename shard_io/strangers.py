"""Parts that lie in a folder and are none of its own: of another plan, format, cut or dtype.

Folders that are put together by hand bring them. Nobody may read one: what is hashed would not be
what is read, or not what the manifest says.
"""

from pathlib import Path

from shard_io.checked import CheckedFiles
from shard_io.errors import ShardError, repairing
from shard_io.layout import PartId
from shard_io.manifest import Manifest
from shard_io.parts import Part, PartEntry, open_part, read_entry
from shard_io.store import Store


def own_entry(folder: Path | Store, part: PartId, manifest: Manifest) -> PartEntry | None:
    """The part's entry, or None where the part is not published.

    Raises `ShardError` where the entry is damaged, or its part of another plan or split, stored in
    another format or cut otherwise than `manifest`, the folder's, says. Entries that name no plan
    are believed.
    """
    entry = read_entry(folder, part)
    if entry is None:
        return None
    path, shard_format = folder / part.entry_path, manifest.storage.format
    if entry.plan not in (None, manifest.plan_id):
        what = f"{path} is of {entry.plan}, and {folder} holds {manifest.plan_id}"
        raise _stranger(folder, part, what, "plans")
    home = part.data_path(shard_format)
    outside = [f["path"] for f in entry.files if "/".join(f["path"].split("/")[:2]) != home]
    if outside:
        what = f"{path} lists {outside[0]}, and {folder} is stored as {shard_format}"
        raise _stranger(folder, part, what, "formats")
    n_microbatches = len(manifest.layout.span(part))
    if entry.n_microbatches != n_microbatches:
        what = (
            f"{path} is of {entry.n_microbatches} microbatches, and by "
            f"shards.parts_per_stage={manifest.storage.parts_per_stage} of {folder} it has "
            f"{n_microbatches}"
        )
        raise _stranger(folder, part, what, "cuts")
    return entry


def open_own(folder: Path | Store, part: PartId, manifest: Manifest, files: CheckedFiles) -> Part:
    """Open the part of `folder` whose files are `files`.

    Raises `ShardError` where x is of another dtype than `manifest`, the folder's, says.
    """
    opened = open_part(files, part, manifest.storage.format)
    if opened.x_dtype != manifest.storage.x_dtype:
        what = (
            f"{folder / part.data_path(manifest.storage.format)} holds x as {opened.x_dtype}, and "
            f"shards.x_dtype of {folder} is {manifest.storage.x_dtype}"
        )
        raise _stranger(folder, part, what, "dtypes")
    return opened


def _stranger(folder: Path | Store, part: PartId, what: str, kinds: str) -> ShardError:
    return ShardError(
        f"{what}: two {kinds}' folders were put together. Keep each in its own; "
        f"{repairing(folder)} makes {part.name} again by the folder's manifest"
    )
