"""Parts in a folder that do not belong there: of another plan, format, division or dtype.

They appear when folders are merged by hand. Nobody may read them, since the files read would not be
the files hashed, or their content would not be what the manifest says.
"""

from pathlib import Path

from shard_io.checked import CheckedFiles
from shard_io.errors import ShardError, repairing
from shard_io.layout import PartId
from shard_io.manifest import Manifest
from shard_io.parts import Part, PartEntry, open_part, read_entry
from shard_io.store import Store


def own_entry(folder: Path | Store, part: PartId, manifest: Manifest) -> PartEntry | None:
    """The part's entry, or None if the part is not published.

    Raises `ShardError` if the entry is damaged, or if plan, split, format or number of microbatches
    of the part do not match the folder's `manifest`. Entries that name no plan are accepted.
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
            f"{path} is of {entry.n_microbatches} microbatches, and with "
            f"shards.parts_per_stage={manifest.storage.parts_per_stage} of {folder} it has "
            f"{n_microbatches}"
        )
        raise _stranger(folder, part, what, "divisions into parts")
    return entry


def open_own(folder: Path | Store, part: PartId, manifest: Manifest, files: CheckedFiles) -> Part:
    """Open the part of `folder` whose files are `files`.

    Raises `ShardError` if they cannot be read, or the dtype of x differs from the folder's
    `manifest`.
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
        f"{what}: folders of two {kinds} were put together. Keep them apart; "
        f"{repairing(folder)} makes {part.name} again as the folder's manifest says"
    )
