"""Options of `benchmarks/` that mean nothing are refused before anything is measured."""

import pytest


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        ("generator_speed", ("--microbatches", 2), "--rounds must be from 1 to 2"),
        ("loss_curves", ("--steps", 401), "--steps must be from 2 to 400"),
        ("new_rows", ("--shapes", "200"), '"200": write rows'),
        ("prior_extensions", ("--steps", 15), "--steps must be a multiple of 10"),
        ("split_heads", ("--parts", 3), "--parts must divide 64"),
        ("calibrate_class_prior", ("--rivals",), "--rivals needs --data"),
        ("wide_tables", (), "give --shards, --data or both"),
    ],
)
def test_what_options_mean_is_checked_first(script, arguments, said, refused, tmp_path):
    needed = {
        "prior_extensions": ("--init", "default", "--data", tmp_path, "--out", tmp_path),
        "split_heads": ("--shards", tmp_path, "--out", tmp_path / "model.safetensors"),
        "calibrate_class_prior": ("--shards", tmp_path),
    }
    assert said in refused(script, *needed.get(script, ()), *arguments)
