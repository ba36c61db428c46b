"""A place that cannot be used is one clear sentence and exit 2, and nothing is left behind."""

import errno
from pathlib import Path

import pytest
from sealed import change_manifest

import shard_io.store
from shard_io import open_shards

# How lines begin that say how far a command is.
_PROGRESS = ("prior-gen: ", "prior-gen repair: ", "prior-gen verify: ", "making up to ")


@pytest.fixture
def fails(prior_gen_command):
    """Run `prior-gen`, which must exit with 2 and one sentence; returns the sentence."""

    def command(*arguments):
        code, _, told = prior_gen_command(*arguments)
        told = "".join(line for line in told.splitlines(True) if not line.startswith(_PROGRESS))
        assert (code, told.count("\n"), told[:7]) == (2, 1, "error: "), told
        return told

    return command


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs /proc")
def test_a_folder_that_cannot_be_created(fails, tiny_yaml):
    told = fails("--config", tiny_yaml, "--stages", "1", "--out", "/proc/shards", "--jobs", "1")
    assert "/proc/shards" in told  # no room there, before it comes to that


def test_a_file_in_the_place_of_a_folder_for_every_command(fails, tiny_yaml, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    makes = ["--config", tiny_yaml, "--stages", "1", "--jobs", "1", "--out"]
    assert "is a file" in fails(*makes, file)
    assert "not a directory" in fails(*makes, file / "below")
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    assert f"{link} is a file, or a link to nothing; give a folder" in fails(*makes, link)
    link.unlink()
    for command in ("info", "verify", "repair"):
        assert f"{file} is a file; give a folder of shards" in fails(command, file)
    assert "is a file" in fails("convert", file, tmp_path / "out", "--format", "zarr")
    assert "is a file" in fails("slice", file, "--where", "d > 2", "--out", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert file.read_text() == "mine"


def test_names_that_no_file_system_has(fails, tiny_yaml, own_shards, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    long = "a" * 300
    makes = ["--config", tiny_yaml, "--stages", "1", "--jobs", "1", "--out"]
    for out in ("~nobody-of-that-name/x", "~nobody-of-that-name"):
        assert f"{out}: there is no such home folder" in fails(*makes, out)
        assert f"{out}: there is no such home folder" in fails("info", out)
    for told in (
        fails(*makes, long),
        fails(*makes, long, "--dry-run"),
        fails("preview", own_shards, "--out", long),
    ):
        assert "file name too long" in told.lower()  # who looks first depends on Python
    assert f"no config '{long}'" in fails("--config", long, "--stages", "1")
    assert list(tmp_path.glob("*a")) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--address", "tcp://x:1"], "--address is for the backends dask and ray"),
        (["--backend", "ray"], "the backend ray needs `pip install puicl[ray]`"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_backend_that_cannot_be_used_claims_no_folder(
    fails, tiny_yaml, tmp_path, monkeypatch, options, sentence, more
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # nothing is installed
    makes = ["--config", tiny_yaml, "--stages", "1", "--out", tmp_path / "x"]
    assert sentence in fails(*makes, *options, *more)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EIO])
def test_a_folder_that_refuses_to_be_written_to(fails, tiny_yaml, tmp_path, monkeypatch, number):
    folder = tmp_path / "shards"

    def refuse(*_):
        raise OSError(number, "refused", str(folder / "entries"))

    monkeypatch.setattr(shard_io.store, "create_exclusively", refuse)
    makes = ["--config", tiny_yaml, "--stages", "1", "--out", folder, "--jobs", "1"]
    assert f"{folder} cannot be used: " in fails(*makes)
    monkeypatch.undo()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_folder_that_becomes_unwritable_during_the_run(fails, tiny_yaml, tmp_path, jobs):
    folder = tmp_path / "shards"
    makes = ["--config", tiny_yaml, "--stages", "1", "--out", folder, "--jobs", jobs]
    folder.mkdir()
    (folder / "parts").write_text("a file where the parts should lie")
    assert f"{folder} cannot be used: " in fails(*makes)
    assert open_shards(folder).published_parts() == []
    assert not (folder / ".staging").exists()
    (folder / "parts").unlink()


@pytest.mark.parametrize("option", [["--jobs", "0"], ["--backend", "mpi"], ["--split", "test"]])
def test_an_option_out_of_range_exits_with_2(option, tiny_yaml, prior_gen_command, tmp_path):
    place = ("--config", tiny_yaml, "--stages", "1", "--out", tmp_path / "x")
    code, _, told = prior_gen_command(*place, *option)
    assert code == 2
    assert option[0] in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stages", ["9" * 5000, "1-" + "9" * 17, "99999999999999999999"])
def test_huge_stage_numbers_are_refused(fails, tiny_yaml, tmp_path, stages):
    told = fails("--config", tiny_yaml, "--stages", stages, "--out", tmp_path / "x")
    assert "the plan has stages 1-5" in told or "is neither a stage nor a range" in told
    assert list(tmp_path.iterdir()) == []


def test_a_folder_begun_elsewhere_is_refused_by_name_of_library_and_instruction_set(
    fails, tiny_yaml, own_shards
):
    path = own_shards / "manifest.json"
    elsewhere = {"numpy": "0.9", "simd": "SSE2"}
    change_manifest(
        own_shards, lambda m: m.update(canary="0" * 64, software=m["software"] | elsewhere)
    )
    (own_shards / "entries" / "stage-0001-part-000.json").unlink()
    before = path.read_bytes()
    makes = ["--config", tiny_yaml, "--stages", "1", "--out", own_shards]
    commands = (
        [*makes, "--jobs", "1"],
        [*makes, "--dry-run"],
        ["repair", own_shards, "--jobs", "2"],
        ["verify", own_shards, "--regenerate", "1"],
    )
    for arguments in commands:
        told = fails(*arguments)
        assert "produces different bits" in told
        assert ", 0.9 there" in told
        assert ", SSE2 there" in told
        assert told.count(" there") == 2
        assert "If the code of the prior was changed, raise its number" in told
    assert path.read_bytes() == before
    assert len(open_shards(own_shards).published_parts()) == 14
