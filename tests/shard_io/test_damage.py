"""Nothing that was altered, cut or half written is ever returned."""

import errno
import hashlib
import io
import json
import re
import struct
import tarfile

import numpy as np
import pytest
from folders import folder_bytes
from sealed import write_sealed

import shard_io.store
from prior_gen.generator import generate_shards
from puicl_config import sha256_of
from shard_io import (
    ManifestLost,
    PartId,
    ShardError,
    open_shards,
    slice_shards,
    stray_files,
    verify_part,
)
from shard_io.store import LocalStore


def files_of(folder, part):
    return [folder / file["path"] for file in open_shards(folder).entry(part).files]


def test_every_flipped_bit_of_a_part_is_found_by_reader_and_verify(own_shards):
    part = PartId(2, 0)
    for path in files_of(own_shards, part):
        whole = path.read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            with pytest.raises(ShardError, match="does not match its SHA-256"):
                open_shards(own_shards)[2, 0, 0]
            assert "does not match its SHA-256" in verify_part(own_shards, part)
        path.write_bytes(whole)
    assert verify_part(own_shards, part) is None


@pytest.fixture(params=["zarr", "webdataset"])
def stored(request, tiny, tmp_path):
    """A folder of stages 1 and 2 in either format."""
    folder = tmp_path / request.param
    shards = tiny.shards.model_copy(update={"format": request.param})
    generate_shards(tiny.model_copy(update={"shards": shards}), folder, [1, 2], jobs=1)
    return folder


@pytest.mark.parametrize("reopened", [False, True])
def test_what_is_altered_after_a_parts_first_opening_is_found(stored, reopened, monkeypatch):
    monkeypatch.setattr("shard_io.reader._OPEN_PARTS", 1)
    victims = [path for path in files_of(stored, PartId(2, 0)) if path.suffix != ".json"]
    for path in victims:
        whole = path.read_bytes()
        for place in (30, len(whole) // 2, len(whole) - 10):
            reader = open_shards(stored)
            assert len(reader.part(PartId(2, 0))) > 0  # hashed, and nothing of it decoded
            if reopened:
                reader[1, 0, 0]
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            with pytest.raises(ShardError, match=r"was altered since .*`prior-gen repair"):
                [reader[2, 0, 0], reader[2, 0, 1]]
            path.write_bytes(whole)
            assert reader[2, 0, 0].address == (2, 0, 0)


@pytest.mark.parametrize("kept", [0, 100])
def test_a_file_cut_short_or_gone_after_its_opening_is_found(stored, kept, monkeypatch):
    monkeypatch.setattr("shard_io.reader._OPEN_PARTS", 1)
    reader = open_shards(stored)
    reader.part(PartId(2, 0))
    path = next(
        path
        for path in files_of(stored, PartId(2, 0))
        if path.name in ("0", "stage-0002-part-000.tar")
    )
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ShardError, match=f"{path.name} was altered since .*ends at byte {kept}"):
        reader[2, 0, 0]
    reader[1, 0, 0]
    path.unlink()
    with pytest.raises(ShardError, match=f"{path.name} is missing; `prior-gen repair"):
        reader[2, 0, 0]


def hashed_again(folder, part):
    """Give the part's entry the hashes of its files, as whoever wrote them would."""
    entry = json.loads((folder / part.entry_path).read_text())
    for file in entry["files"]:
        content = (folder / file["path"]).read_bytes()
        file["bytes"], file["sha256"] = len(content), hashlib.sha256(content).hexdigest()
    text = json.dumps(entry, sort_keys=True, separators=(",", ":")) + "\n"
    (folder / part.entry_path).write_text(text)


def no_header(content):
    return b"\0" * 16 + content[16:]


def longer_than_it_is(content):
    """A chunk that Blosc is told to copy as it is, of more bytes than there are."""
    flags, n_bytes = content[2] | 2, int.from_bytes(content[4:8], "little")
    return (
        content[:2]
        + bytes([flags])
        + content[3:12]
        + struct.pack("<I", 16 + n_bytes)
        + content[16:]
    )


def chunks_of_nothing(content):
    about = json.loads(content)
    about["codecs"][0]["configuration"]["chunk_shape"] = [0]
    return json.dumps(about).encode()


@pytest.mark.parametrize(
    ("name", "damaged"),
    [("c/0", no_header), ("c/0", longer_than_it_is), ("zarr.json", chunks_of_nothing)],
)
def test_what_cannot_be_decoded_is_told_in_a_sentence_by_reader_and_verify(
    own_shards, name, damaged
):
    part = PartId(2, 0)
    path = own_shards / part.data_path("zarr") / "x" / name
    path.write_bytes(damaged(path.read_bytes()))
    hashed_again(own_shards, part)
    said = f"{part.data_path('zarr')} cannot be decoded .*; `prior-gen repair {own_shards}`"
    with pytest.raises(ShardError, match=said):
        open_shards(own_shards)[2, 0, 0]
    assert re.search(said, verify_part(own_shards, part))


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        (lambda records: 5, "cannot be decoded .its microbatches are not a list"),
        (lambda records: [], "cannot be decoded .list index out of range"),
        (lambda records: [{**each, "tags": []} for each in records], "its tags are not a mapping"),
        (lambda records: [{**each, "tags": {}} for each in records], r"holds \[None, None, None\]"),
        (lambda records: [{**each, "x_shape": [6]} for each in records], "x has 1 axes and y 2"),
    ],
)
def test_what_a_zarr_part_says_of_its_microbatches_is_not_believed(own_shards, records, sentence):
    part = PartId(2, 0)
    path = own_shards / part.data_path("zarr") / "zarr.json"
    about = json.loads(path.read_text())
    about["attributes"]["microbatches"] = records(about["attributes"]["microbatches"])
    path.write_text(json.dumps(about))
    hashed_again(own_shards, part)
    with pytest.raises(ShardError, match=sentence):
        open_shards(own_shards)[2, 0, 0]
    assert verify_part(own_shards, part)


def npy_of(shape):
    """The beginning of an array file of float16 that announces `shape`."""
    header = f"{{'descr': '<f2', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def archive_of_arrays():
    content = io.BytesIO()
    np.savez(content, np.zeros(3))
    return content.getvalue()


def name_of(size):
    """A tar member that announces a name of `size` bytes for the next one."""
    told = tarfile.TarInfo("././@LongLink")
    told.type, told.size = tarfile.GNUTYPE_LONGNAME, size
    return told.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    ("before", "x", "told"),
    [
        (b"", npy_of((10**15, 1, 1)), "announces more than this machine's memory holds"),
        (b"", archive_of_arrays(), "cannot be decoded "),
        (name_of(10**15), None, "announces more than this machine's memory holds"),
    ],
    ids=["array", "archive", "name"],
)
def test_what_a_tar_announces_beyond_its_end_is_told_in_a_sentence(tiny, tmp_path, before, x, told):
    storage = tiny.shards.model_copy(update={"format": "webdataset"})
    generate_shards(tiny.model_copy(update={"shards": storage}), tmp_path, [2], jobs=1)
    part, content = PartId(2, 0), io.BytesIO()
    path = tmp_path / part.data_path("webdataset")
    with tarfile.open(path) as old, tarfile.open(fileobj=content, mode="w") as new:
        for member in old:
            own = old.extractfile(member).read()
            if x is not None and member.name.endswith(".x.npy"):
                own, member.size = x, len(x)
            new.addfile(member, io.BytesIO(own))
    path.write_bytes(before + content.getvalue())
    hashed_again(tmp_path, part)
    said = f"{part.data_path('webdataset')} {told}"
    with pytest.raises(ShardError, match=said):
        open_shards(tmp_path)[2, 0, 0]
    assert said in verify_part(tmp_path, part)


@pytest.mark.parametrize("storage", ["zarr", "webdataset"])
def test_a_flipped_bit_of_a_tag_is_found_before_a_filter_believes_it(tiny, tmp_path, storage):
    folder = tmp_path / storage
    config = tiny.model_copy(update={"shards": tiny.shards.model_copy(update={"format": storage})})
    generate_shards(config, folder, [2], jobs=1)
    part = PartId(2, 1)
    digit = re.compile(rb'n_features"\s*:\s*')
    victim = next(path for path in files_of(folder, part) if digit.search(path.read_bytes()))
    content = bytearray(victim.read_bytes())
    content[digit.search(content).end()] ^= 1
    victim.write_bytes(content)
    with pytest.raises(ShardError, match="does not match its SHA-256"):
        open_shards(folder).tags(part)
    with pytest.raises(ShardError, match="does not match its SHA-256"):
        slice_shards(folder, "n_features > 2", tmp_path / "slice")


@pytest.mark.parametrize("damage", ["truncate", "remove"])
def test_a_truncated_or_missing_file_is_found_and_repair_makes_the_same_bytes(
    own_shards, damage, command
):
    before = folder_bytes(own_shards)
    victim = files_of(own_shards, PartId(1, 1))[0]
    if damage == "truncate":
        victim.write_bytes(victim.read_bytes()[:-1])
    else:
        victim.unlink()
    with pytest.raises(ShardError, match=victim.name):
        open_shards(own_shards).check_sizes([PartId(1, 1)])
    code, told = command("verify", own_shards)
    assert code == 1
    assert victim.name in told
    code, told = command("repair", own_shards, "--jobs", 1)
    assert code == 0
    assert "made 1 part again" in told
    assert folder_bytes(own_shards) == before


def test_swapped_parts_are_found(own_shards):
    one, two = (own_shards / PartId(1, n).entry_path for n in (0, 1))
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)
    with pytest.raises(ShardError, match="is not the entry of this part"):
        open_shards(own_shards)[1, 0, 0]


def test_a_part_with_a_forged_entry_but_anothers_content_is_found(own_shards):
    source, target = PartId(1, 0), PartId(2, 0)
    for theirs, ours in zip(
        files_of(own_shards, source), files_of(own_shards, target), strict=True
    ):
        ours.write_bytes(theirs.read_bytes())
    fields = json.loads((own_shards / source.entry_path).read_text())
    fields["stage"] = 2
    for file in fields["files"]:
        file["path"] = file["path"].replace("stage-0001", "stage-0002")
    text = json.dumps(fields, sort_keys=True, separators=(",", ":")) + "\n"
    (own_shards / target.entry_path).write_text(text)
    with pytest.raises(ShardError, match=r"holds \[1, 0, 0\] where \[2, 0, 0\] belongs"):
        open_shards(own_shards)[2, 0, 0]
    assert "does not hold the microbatches" in verify_part(own_shards, target)


def rewrite(folder, part, entry):
    """An entry as whoever forges one would write it, and the manifest with it."""
    text = json.dumps(entry, sort_keys=True, separators=(",", ":")) + "\n"
    (folder / part.entry_path).write_text(text)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["parts"][part.name] = entry
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


@pytest.mark.parametrize("left_out", ["x/c/0", "y/zarr.json"])
def test_what_an_entry_leaves_out_is_not_read_though_it_lies_there(own_shards, left_out):
    part = PartId(2, 0)
    entry = json.loads((own_shards / part.entry_path).read_text())
    entry["files"] = [file for file in entry["files"] if not file["path"].endswith(left_out)]
    rewrite(own_shards, part, entry)
    with pytest.raises(ShardError, match=f"{left_out} is not listed in its part's entry"):
        open_shards(own_shards)[2, 0, 0]
    assert "is not listed in its part's entry" in verify_part(own_shards, part)


def test_what_an_entry_counts_is_counted_again_and_its_files_are_described(own_shards):
    part = PartId(2, 0)
    whole = json.loads((own_shards / part.entry_path).read_text())
    for key in ("n_tasks", "n_rows", "n_cells"):
        rewrite(own_shards, part, {**whole, key: whole[key] + 1})
        assert "wrong counts of microbatches, tasks, rows or cells" in verify_part(own_shards, part)
    rewrite(own_shards, part, {**whole, "content_digest": "0" * 64})
    assert verify_part(own_shards, part) == f"{part.name} does not match its content digest"
    one, *others = whole["files"]
    for files in ([], [{**one, "bytes": True}, *others], [{**one, "more": 1}, *others]):
        rewrite(own_shards, part, {**whole, "files": files})
        with pytest.raises(ShardError, match=r"is damaged: (it lists no|a file is not)") as told:
            open_shards(own_shards).entry(part)
        advice = f"; `prior-gen repair {own_shards}` makes {part.name} again"
        assert str(told.value).endswith(advice)


def test_a_file_that_grew_is_found_by_its_size_alone(own_shards):
    victim = files_of(own_shards, PartId(1, 1))[0]
    size = victim.stat().st_size
    with victim.open("ab") as file:
        file.write(b"\n")
    reader = open_shards(own_shards)
    for found in (lambda: reader.check_sizes([PartId(1, 1)]), lambda: reader.part(PartId(1, 1))):
        with pytest.raises(ShardError, match=f"has {size + 1} bytes instead of {size};"):
            found()


def test_a_damaged_manifest_is_refused(own_shards):
    path = own_shards / "manifest.json"
    text = path.read_text()
    altered = text.replace('"sigma_init": 0.8', '"sigma_init": 0.9')
    for broken in (text[:-40], altered, "[]", "[" * 100_000):
        path.write_text(broken)
        with pytest.raises(ShardError, match="is damaged"):
            open_shards(own_shards)
    raw = json.loads(text)
    for parts in ([], "parts", None):
        path.write_text(json.dumps({**raw, "parts": parts}))
        with pytest.raises(
            ManifestLost, match="is damaged: its parts are not a mapping; put a copy"
        ):
            open_shards(own_shards)


def test_verify_sends_nobody_to_repair_for_files_that_repair_leaves_alone(own_shards, command):
    stray, entry = own_shards / "parts" / "x", own_shards / PartId(2, 0).entry_path
    stray.write_text("stranger")
    alone = "; remove what belongs to no published part yourself, repair leaves it alone\n"
    status, out = command("verify", own_shards)
    assert status == 1
    assert out.endswith(f"{own_shards}: 1 problem{alone}")
    entry.write_text(entry.read_text() + " ")
    _, out = command("verify", own_shards)
    assert out.endswith(f"; `prior-gen repair {own_shards}` mends bad parts\n")
    assert command("repair", own_shards)[0] == 0
    assert command("verify", own_shards)[1].endswith(f"{own_shards}: 1 problem{alone}")


@pytest.mark.parametrize("asked", ["verify", "repair"])
def test_a_stray_files_name_gives_no_orders_to_the_terminal(own_shards, asked, command):
    (own_shards / "\x1b[2J").write_text("stranger")
    (own_shards / "\udcff").write_text("one whose name is no text")
    _, out = command(asked, own_shards)
    assert f"{own_shards}/\\x1b[2J belongs to no published part" in out
    assert f"{own_shards}/\\udcff belongs to no published part" in out
    assert "\x1b" not in out


@pytest.mark.parametrize("manifest_fits", [True, False])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_leaves_only_whole_parts_and_one_sentence(
    tiny, tmp_path, monkeypatch, number, manifest_fits
):
    folder, real = tmp_path / "shards", shard_io.store.publish_files
    replace, calls = LocalStore.replace, []

    def full_after_two(source, target):
        calls.append(source)
        if len(calls) > 2:
            raise OSError(number, "No space left on device")
        return real(source, target)

    def full_for_the_manifest(store, path, content):
        if path == "manifest.json":
            raise OSError(number, "No space left on device")
        replace(store, path, content)

    monkeypatch.setattr(shard_io.store, "publish_files", full_after_two)
    if not manifest_fits:
        monkeypatch.setattr(LocalStore, "replace", full_for_the_manifest)
    with pytest.raises(ShardError, match="is full after 2 of 9 parts"):
        generate_shards(tiny, folder, [1, 2, 3], jobs=1)
    monkeypatch.undo()
    assert len(open_shards(folder).published_parts()) == 2
    assert (list(stray_files(folder)) == []) == manifest_fits  # which may lack their entries
    generate_shards(tiny, folder, [1, 2, 3], jobs=1)
    assert list(stray_files(folder)) == []
    assert all(verify_part(folder, part) is None for part in open_shards(folder).published_parts())
    assert len(open_shards(folder).published_parts()) == 9


def test_a_full_disk_is_told_although_an_entry_is_damaged(tiny, own_shards, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (own_shards / PartId(5, 0).entry_path).unlink()
    (own_shards / PartId(1, 0).entry_path).write_text("{}")
    monkeypatch.setattr(shard_io.store, "publish_files", full)
    with pytest.raises(ShardError, match="is full after 0 of 1 parts"):
        generate_shards(tiny, own_shards, [5], jobs=1)


def test_a_folder_of_another_version_of_the_prior_is_refused(own_shards):
    path = own_shards / "manifest.json"
    raw = json.loads(path.read_text())
    number = raw["plan"]["algorithm"]
    for change, said in (
        ({"algorithm": number + 1}, rf"algorithm {number + 1} there, {number} here"),
        ({"extensions_algorithm": 9}, "extensions_algorithm 9 there, None here"),
        (
            {"prior": {**raw["plan"]["prior"], "arithmetic": "libraries"}},
            "with other keys of the config",
        ),
    ):
        plan = {**raw["plan"], **change}
        write_sealed(path, {**raw, "plan": plan, "plan_digest": sha256_of(plan)})
        with pytest.raises(ShardError, match=rf"another version of the prior \({said}"):
            open_shards(own_shards)


def test_a_folder_of_another_version_of_the_format_is_refused(own_shards):
    path = own_shards / "manifest.json"
    write_sealed(path, {**json.loads(path.read_text()), "format_version": 2})
    with pytest.raises(ShardError, match="has format version 2; this code reads 1"):
        open_shards(own_shards)
