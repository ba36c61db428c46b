"""The trainer on shards behind a URL and on slices: the same bits, or plainly another data hash."""

import functools
import http.server
import json
import threading
from pathlib import Path

import pytest

from shard_io import slice_shards

MAIN = Path(__file__).resolve().parents[2] / "trainer" / "main.py"


@pytest.fixture
def train(tiny_yaml, run_command, tmp_path):
    def run(name, shards, *overrides, check=True):
        out = tmp_path / name
        overrides = overrides or ("train.max_steps=5",)
        arguments = ["--config", tiny_yaml, "--shards", shards, "--out", out, *overrides]
        done = run_command(MAIN, *arguments, check=check)
        return done, (out / "ledger.jsonl").read_bytes()

    return run


def test_a_run_from_a_web_server_has_the_bits_of_one_from_the_folder(
    train, all_shards, tmp_path, monkeypatch
):
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("PUICL_CACHE", str(tmp_path / "cache"))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(all_shards))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        assert train("far", url)[1] == train("near", all_shards)[1]
    finally:
        server.shutdown()
        server.server_close()


def test_a_slice_and_train_where_give_the_same_bits_and_no_run_goes_on_on_the_whole_plan(
    train, all_shards, tmp_path
):
    slice_shards(all_shards, "d <= 3", tmp_path / "slice")
    _, sliced = train("sliced", tmp_path / "slice")
    done, filtered = train("filtered", all_shards, "train.max_steps=5", "train.where=d <= 3")
    assert filtered == sliced  # losses, gradient norms, weights and data are the slice's
    assert "20 microbatches are read from 18: each 1.11 times on average" in done.stdout
    assert json.loads((tmp_path / "filtered" / "model.json").read_text())["reuse"] > 1.1
    ours, theirs = (
        [json.loads(line) for line in lines.splitlines()]
        for lines in (sliced, train("whole", all_shards)[1])
    )
    assert [line["microbatches"] for line in ours] == [line["microbatches"] for line in theirs]
    assert all(a["data"] != b["data"] for a, b in zip(ours, theirs, strict=True))
    assert ours[0]["loss"] != theirs[0]["loss"]
    done, _ = train("sliced", all_shards, "train.max_steps=8", check=False)
    assert done.returncode == 2
    assert "are not those the checkpoint was trained on" in done.stderr
