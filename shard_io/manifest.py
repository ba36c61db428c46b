"""The manifest: which plan a folder holds and how it is stored; it decides who may write there."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from puicl_config import (
    Config,
    InputError,
    PriorConfig,
    ShardsConfig,
    Split,
    canonical_json,
    differences,
    first_of,
    parse_config,
    plan_digest,
    plan_of,
    sha256_of,
)
from shard_io.errors import ManifestLost, NoShards, ShardError, repairing
from shard_io.layout import BYSTANDERS, ENTRIES, MANIFEST, OURS, Layout, PlanId, other_homes
from shard_io.slice_index import SliceIndex, slice_from_plain
from shard_io.store import Store, store_of

FORMAT_VERSION = 1
# Values that stand for storage settings in folders older than these settings. A setting with this
# value is not written, so that the manifests of such folders keep their bytes.
_BEFORE = {"shuffle": "bits"}
# Settings that do not change the content: a folder keeps its first writer's choice.
_PACKING = {"zstd_level", "shuffle"}
# Key in `software` of the digest of some tasks of the plan; older versions did not record it.
TASKS = "sample"


@dataclass(frozen=True)
class Manifest:
    """What a folder holds.

    `canary` and `software` are those of the folder's first writer, or of the machine that rebuilt a
    lost manifest and produced the same bits. `slice` is None if the folder holds the plan itself
    and not a subset of it.
    """

    config: Config
    split: Split
    canary: str
    software: dict[str, str]
    slice: SliceIndex | None = None

    @property
    def plan_digest(self) -> str:
        """Digest that names the data."""
        return plan_digest(self.config.prior)

    @property
    def plan_id(self) -> PlanId:
        """The plan and split that all parts of the folder must belong to."""
        return PlanId(self.plan_digest, self.split)

    @property
    def storage(self) -> ShardsConfig:
        """Format, codec, dtype and parts per stage of this folder."""
        return self.config.shards

    @property
    def layout(self) -> Layout:
        """How the plan is divided into parts here."""
        return Layout(self.config.prior, self.storage.parts_per_stage)

    def header(self) -> dict[str, Any]:
        """The manifest without the merged entries, as plain data."""
        header = {
            "format_version": FORMAT_VERSION,
            "plan": plan_of(self.config.prior),
            "plan_digest": self.plan_digest,
            "split": self.split,
            "storage": {
                key: value
                for key, value in self.storage.model_dump(mode="json").items()
                if _BEFORE.get(key) != value
            },
            "canary": self.canary,
            "software": self.software,
        }
        if self.slice:
            header["slice"] = self.slice.to_plain(self.layout)
        return header

    def to_bytes(self, entries: dict[str, Any]) -> bytes:
        """The file's content: header, its digest, and the entries by part name."""
        header = self.header()
        content = {**header, "header_digest": sha256_of(header), "parts": entries}
        return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def read_manifest(folder: Path | Store) -> Manifest:
    """Read and check a folder's manifest.

    Raises `NoShards` if there are no shards, `ManifestLost` if it is damaged or, on this machine,
    missing beside entries of parts, and `ShardError` if it cannot be read, or if another version of
    the format or of the prior's algorithm wrote it.
    """
    path = folder / MANIFEST
    try:
        raw = json.loads(store_of(folder).read(MANIFEST))
        header = {key: raw[key] for key in raw if key not in ("parts", "header_digest")}
        if not isinstance(raw["parts"], dict):
            raise ValueError("its parts are not a mapping")
        if raw["header_digest"] != sha256_of(header):
            raise ValueError("its header's digest does not match")
        version, stored_digest = header["format_version"], header["plan_digest"]
        prior, storage = header["plan"]["prior"], {**_BEFORE, **header["storage"]}
        split, canary, software = header["split"], header["canary"], header["software"]
    except FileNotFoundError:
        orphans = sorted((folder / ENTRIES).glob("*.json")) if isinstance(folder, Path) else []
        if not orphans:
            raise NoShards(f"{folder} holds no shards: there is no {MANIFEST}") from None
        # Another writer may just have begun the folder; it made the manifest first.
        if store_of(folder).present([MANIFEST]):
            return read_manifest(folder)
        raise ManifestLost(_parts_without_manifest(folder, orphans[0].stem)) from None
    except NotADirectoryError:
        raise ShardError(f"{folder} is a file; give a folder of shards") from None
    except OSError as error:
        raise ShardError(f"{path} cannot be read: {error.strerror or error}") from None
    except ShardError:  # a ValueError, too, but a failed read does not mean damage
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ManifestLost(
            f"{path} is damaged: {error}; put a copy of it back, or rebuild it from the parts with "
            f"{repairing(folder, ' --config CONFIG')}"
        ) from None
    if version != FORMAT_VERSION:
        raise ShardError(f"{path} has format version {version}; this code reads {FORMAT_VERSION}")
    try:
        config = parse_config({"prior": prior, "shards": storage}, where=str(path))
    except InputError as error:
        raise ShardError(f"{error}; another version of puicl may have made these shards") from None
    if plan_digest(config.prior) != stored_digest:
        raise ShardError(
            f"{path} was made by another version of the prior ("
            f"{_other_version(header['plan'], config)}): its plan digest does not match its plan "
            "here"
        )
    try:
        layout = Layout(config.prior, config.shards.parts_per_stage)
        index = slice_from_plain(header.get("slice"), layout)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ShardError(f"{path} is damaged: {error}") from None
    return Manifest(config, split, canary, software, index)


def recorded_config(folder: Path | Store) -> Config | None:
    """Plan and storage that a damaged manifest still holds, unchecked; None if it holds none.

    Raises `ShardError` if it is the manifest of a slice, which cannot be rebuilt from its parts.
    """
    try:
        raw = json.loads(store_of(folder).read(MANIFEST))
        is_slice = "slice" in raw
        settings = {"prior": raw["plan"]["prior"], "shards": {**_BEFORE, **raw["storage"]}}
        config = parse_config(settings, where=str(folder / MANIFEST))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if is_slice:
        raise ShardError(f"{folder} is a slice, and its parts do not tell which: slice it again")
    return config


def _parts_without_manifest(folder: Path | Store, name: str) -> str:
    """A sentence about a folder that lost its manifest and still has the part `name`."""
    return (
        f"{folder} holds parts ({name}, ...) and no manifest: rebuild it with "
        f"{repairing(folder, ' --config CONFIG')}"
    )


def claim_folder(folder: Path | Store, manifest: Manifest) -> Manifest:
    """Begin a folder of this plan, or check that `folder` is one already.

    Other writers may do so at the same time, since the manifest is created exclusively. Returns the
    folder's manifest, with the compression settings that the folder began with. Raises `ShardError`
    if the folder holds anything else, and `InputError` if it is a read-only URL.
    """
    store = store_of(folder)
    if check_claim(folder, manifest) is None:
        store.prepare()
        store.create(MANIFEST, manifest.to_bytes({}))
    return check_claim(folder, manifest) or read_manifest(folder)


def check_claim(folder: Path | Store, manifest: Manifest) -> Manifest | None:
    """The folder's manifest, or None if `claim_folder` would begin the folder; writes nothing.

    Subfolders with their own manifest hold other shards and are ignored. Raises `ShardError` if the
    folder holds anything else, and `InputError` if it is a read-only URL.
    """
    store = store_of(folder)
    names = store.names()
    if MANIFEST not in names:
        listing = store.listing() or []
        known = BYSTANDERS | OURS | other_homes(listing)
        strangers = [name for name in names if name not in known]
        if strangers:
            raise ShardError(
                f"{folder} holds other files ({', '.join(strangers[:3])}) and no manifest; "
                "give an empty folder"
            )
        # Entries without a manifest: `repair` finds out which plan they belong to. Or another
        # writer has just begun the folder; it made the manifest first, so look for it again.
        orphans = [path for path in listing if path.startswith(f"{ENTRIES}/")]
        if not orphans:
            return None
        if MANIFEST not in store.names():
            raise ShardError(
                f"{_parts_without_manifest(folder, Path(orphans[0]).stem)}, or give an empty "
                "folder, where the plan's parts are made again with the same digests"
            )
    present = read_manifest(folder)
    differences = describe_differences(manifest.header(), present.header())
    if differences:
        raise ShardError(
            f"{folder} holds other shards: {first_of(differences)}; give another folder"
        )
    return present


def check_same_bits(
    folder: Path | Store, manifest: Manifest, source: Path | Store, theirs: Manifest
) -> None:
    """Raise `ShardError` if parts of `source` would get among other bits in `folder`."""
    samples = {manifest.software.get(TASKS), theirs.software.get(TASKS)} - {None}
    if manifest.canary != theirs.canary or len(samples) > 1:
        raise ShardError(
            f"{folder} was begun on a machine that produces different bits from those in {source}; "
            "give another folder"
        )


def describe_differences(wanted: dict[str, Any], present: dict[str, Any]) -> list[str]:
    """Differences between two headers in plan, split, storage or slice: one phrase per key."""
    pairs = {"split": (present["split"], wanted["split"])}
    for key, value in wanted["storage"].items():
        if key not in _PACKING:
            pairs[f"shards.{key}"] = present["storage"].get(key), value
    there, here = present["plan"], wanted["plan"]
    for key in there.keys() & here.keys() - {"prior"}:  # versions of algorithms that both use
        pairs[key] = there[key], here[key]
    pairs |= {
        f"prior.{key}": pair
        for key, pair in differences(there["prior"], here["prior"], PriorConfig).items()
    }
    found = [
        f"{key} is {value} there, {asked} wanted"
        for key, (value, asked) in pairs.items()
        if canonical_json(value) != canonical_json(asked)
    ]
    here, there = (side.get("slice", {}) for side in (wanted, present))
    if here.get("where") != there.get("where"):
        found.append(f"{_say_slice(there)} there, {_say_slice(here)} wanted")
    elif here != there:
        found.append("the slice's survivors differ")
    return found


def _other_version(plan: dict[str, Any], config: Config) -> str:
    """How this version would write `plan` otherwise: numbers of algorithms, or keys."""
    here = plan_of(config.prior)
    numbers = [
        f"{key} {plan.get(key)} there, {here.get(key)} here"
        for key in sorted({*plan, *here} - {"prior"})
        if plan.get(key) != here.get(key)
    ]
    return "; ".join(numbers) or "with other keys of the config"


def _say_slice(index: dict[str, Any]) -> str:
    return f"the slice where {index['where']!r}" if index else "the whole plan"
