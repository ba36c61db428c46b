"""Shards behind URLs, against real servers: an S3 server and a plain web server.

Needs `pip install puicl[dev]`.
"""

import shutil
import sys

import numpy as np
import pytest
from folders import bytes_under, objects
from web_server import QuietHandler

from prior_gen.generator import generate_shards
from puicl_config import InputError
from shard_io import PartId, ShardError, folder_of, open_shards, publish_part, slice_shards
from shard_io.remote import RemoteStore

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")


pytestmark = pytest.mark.usefixtures("cache")


def assert_same(reader, other, place):
    assert reader[place].tags == other[place].tags
    np.testing.assert_array_equal(reader[place].x, other[place].x)
    np.testing.assert_array_equal(reader[place].y, other[place].y)


def test_what_is_generated_into_a_bucket_has_the_bytes_of_a_folder(tiny, all_shards, bucket):
    folder = folder_of(f"s3://{bucket[0]}/deep/shards/")
    for stages in ([1, 2], [2, 3, 4, 5]):
        result = generate_shards(tiny, folder, stages, jobs=1)
    assert (len(result.written), result.skipped) == (9, 3)
    assert objects(bucket) == bytes_under(all_shards, "deep/shards/")


def test_worker_processes_of_the_command_write_to_a_bucket(
    tiny, tiny_yaml, all_shards, bucket, run_command
):
    arguments = ["--config", tiny_yaml, "--stages", "1-5", "--out", f"s3://{bucket[0]}/x"]
    code = "from prior_gen.cli import main; main()"
    done = run_command("-c", code, *arguments, "--jobs", "2", "--part-range", "1/2")
    assert "wrote 8 parts" in done.stdout
    assert "these stages still lack 7 parts" in done.stdout
    rest = generate_shards(tiny, folder_of(f"s3://{bucket[0]}/x"), range(1, 6), jobs=1)
    assert (len(rest.written), rest.skipped) == (7, 8)
    assert objects(bucket) == bytes_under(all_shards, "x/")


def test_a_bucket_is_read_as_a_folder_is(tiny, all_shards, bucket, cache):
    bucket[1].put(f"{all_shards}/", f"{bucket[0]}/shards/", recursive=True)
    reader, whole = open_shards(f"s3://{bucket[0]}/shards"), open_shards(all_shards)
    assert reader.manifest == whole.manifest
    assert reader.published_parts() == whole.published_parts()
    reader.check_sizes(reader.published_parts())
    for place in ((1, 0, 0), (3, 3, 3), (5, 1, 2)):
        assert_same(reader, whole, place)
    cached = [path.name for path in cache.rglob("stage-*")]
    assert sorted(cached) == [f"stage-000{n}-part-00{p}.zarr" for n, p in ((1, 0), (3, 2), (5, 2))]


def test_a_part_whose_upload_was_cut_is_no_part(tiny, bucket, monkeypatch):
    folder = folder_of(f"s3://{bucket[0]}")
    generate_shards(tiny, folder, [1], jobs=1)
    reader = open_shards(folder)
    part = reader.part(PartId(1, 0))
    microbatches = [part[position] for position in range(len(part))]
    for path in bucket[1].find(f"{bucket[0]}/entries"):
        bucket[1].rm_file(path)
    uploads = []

    class DeadAfterTwo:
        def __getattr__(self, name):
            return getattr(bucket[1], name)

        def put_file(self, *arguments):
            if len(uploads) == 2:
                raise ConnectionResetError("the line went dead")
            uploads.append(arguments)
            bucket[1].put_file(*arguments)

    monkeypatch.setattr(RemoteStore, "_files", lambda self: DeadAfterTwo())
    with pytest.raises(ShardError, match="cannot be written: ConnectionResetError: the line"):
        publish_part(folder, PartId(1, 0), microbatches, reader.manifest.storage, None)
    assert len(uploads) == 2
    assert open_shards(folder).published_parts() == []
    with pytest.raises(ShardError, match="lacks stage-0001-part-000"):
        open_shards(folder)[1, 0, 0]


def test_the_entry_is_uploaded_after_every_file_of_its_part(tiny, bucket, monkeypatch):
    order = []
    for name in ("publish", "replace"):
        real = getattr(RemoteStore, name)

        def noted(self, first, second, name=name, real=real):
            real(self, first, second)
            order.append(name if name == "publish" else first)

        monkeypatch.setattr(RemoteStore, name, noted)
    generate_shards(tiny, folder_of(f"s3://{bucket[0]}"), [1], jobs=1)
    assert order == [
        *("publish", "entries/stage-0001-part-000.json"),
        *("publish", "entries/stage-0001-part-001.json"),
        *("publish", "entries/stage-0001-part-002.json"),
        "manifest.json",
    ]


def test_another_plan_and_other_objects_are_refused(tiny, tiny_yaml, bucket):
    from puicl_config import load_config

    folder = folder_of(f"s3://{bucket[0]}/a")
    generate_shards(tiny, folder, [1], jobs=1)
    folder_of(f"s3://{bucket[0]}/notes").create("today.txt", b"x")
    before = objects(bucket)
    with pytest.raises(ShardError, match="seed is 0 there, 1 wanted"):
        generate_shards(load_config(tiny_yaml, ["prior.seed=1"]), folder, [1], jobs=1)
    with pytest.raises(ShardError, match=r"holds other files \(notes\) and no manifest"):
        generate_shards(tiny, folder_of(f"s3://{bucket[0]}"), [1], jobs=1)
    assert objects(bucket) == before
    assert not folder.create("manifest.json", b"mine")
    assert objects(bucket) == before


def test_a_bucket_that_is_not_there_is_one_sentence(tiny, bucket):
    with pytest.raises(ShardError, match=r"s3://no-such-bucket/x holds no shards"):
        open_shards("s3://no-such-bucket/x")
    with pytest.raises(ShardError, match=r"cannot be written"):
        generate_shards(tiny, folder_of("s3://no-such-bucket/x"), [1], jobs=1)


@pytest.mark.parametrize("kind", ["whole", "slice"])
def test_a_web_server_that_lists_nothing_is_read_and_asked_once_for_a_part(
    kind, all_shards, serve, tmp_path
):
    folder = all_shards
    if kind == "slice":
        folder = tmp_path / "slice"
        slice_shards(all_shards, "d <= 3", folder)
    url, asked = serve(folder)
    reader, whole = open_shards(url), open_shards(folder)
    assert reader.published_parts() == whole.published_parts()
    asked.clear()
    for place in ((2, 0, 0), (2, 0, 1), (5, 1, 3)):
        assert_same(reader, whole, place)
    files = [path for path in asked if path.startswith("/parts/")]
    assert len(files) == len(set(files)) > 0
    asked.clear()
    assert_same(open_shards(url), whole, (2, 0, 0))
    assert [path for path in asked if path.startswith("/parts/")] == []


def test_a_damaged_cache_is_mended_and_a_damaged_server_is_told(own_shards, serve, cache):
    url, _ = serve(own_shards)
    whole = open_shards(own_shards)[1, 0, 0]
    open_shards(url)[1, 0, 0]
    (cached,) = cache.rglob("x/c/0")
    for damaged in (cached.read_bytes()[:-3], b"\0" * cached.stat().st_size):
        cached.write_bytes(damaged)
        np.testing.assert_array_equal(open_shards(url)[1, 0, 0].x, whole.x)
    on_server = own_shards / "parts" / "stage-0001-part-000.zarr" / "x" / "c" / "0"
    on_server.write_bytes(on_server.read_bytes()[:-1])
    open_shards(url)[1, 0, 0]  # what the cache holds is still right
    shutil.rmtree(cache)
    with pytest.raises(ShardError, match="x/c/0 does not match its SHA-256"):
        open_shards(url)[1, 0, 0]
    on_server.unlink()
    with pytest.raises(ShardError, match="x/c/0 is missing"):
        open_shards(url)[1, 0, 0]
    assert not list(cache.rglob("*incoming*"))


def test_a_server_that_fails_is_not_taken_for_one_that_lacks_a_part(own_shards, serve, monkeypatch):
    url, _ = serve(own_shards)
    reader = open_shards(url)
    (own_shards / PartId(3, 1).entry_path).unlink()
    assert reader.missing_parts(range(1, 6)) == [PartId(3, 1)]
    monkeypatch.setattr(QuietHandler, "send_head", lambda self: self.send_error(503))
    with pytest.raises(ShardError, match=r"cannot be read: .*503"):
        reader.missing_parts([1])


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://host/x", "shards are read from s3, http, https or a folder"),
        ("http://someone:secret@host/x", "credentials belong in the environment"),
        ("https://host/x?token=secret", "credentials belong in the environment"),
        ("gs://someone:secret@host/x", "credentials belong in the environment"),
    ],
)
def test_other_urls_and_urls_with_credentials_are_refused(url, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        folder_of(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_does_not_answer_is_one_sentence():
    with pytest.raises(ShardError, match=r"^http://127.0.0.1:9/manifest.json cannot be read: "):
        open_shards("http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--stages", "1", "--out", "http://127.0.0.1:9"], "can only be read; write to a folder"),
        (["repair", "http://127.0.0.1:9"], "can only be read; write to a folder or to s3://"),
        (
            ["convert", "x", "https://127.0.0.1:9/y", "--format", "zarr"],
            "https://127.0.0.1:9/y can only be read",
        ),
        (
            ["slice", "x", "--where", "d > 2", "--out", "s3://b/x"],
            "s3://b/x is a URL; give a folder of this machine",
        ),
    ],
)
def test_a_command_that_cannot_use_a_url_says_so(arguments, sentence, prior_gen_command, tiny_yaml):
    if "--stages" in arguments:
        arguments = [*arguments, "--config", str(tiny_yaml), "--jobs", "1"]
    code, _, told = prior_gen_command(*arguments)
    assert code == 2
    assert told.startswith("error: ")
    assert sentence in told


def test_without_the_extra_no_folder_is_called_damaged(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        ShardError, match=r"^http://localhost:1/x needs `pip install puicl.remote.`$"
    ):
        open_shards("http://localhost:1/x")
