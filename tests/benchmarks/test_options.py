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
        ("ablations", ("--seeds", 0), "--seeds: 0 is not a whole number above 0"),
        ("bands_as_text", ("--bands", 0), "--bands: 0 is not a whole number above 0"),
        ("blend_weights", ("--jobs", 0), "--jobs: 0 is not a whole number above 0"),
        ("compare_networks", ("--splits", 0), "--splits: 0 is not a whole number above 0"),
        ("context_shapes", ("--most", 0), "--most: 0 is not a whole number above 0"),
        ("count_designs", ("--draws", 0), "--draws: 0 is not a whole number above 0"),
        ("few_labeled", ("--draws", 0), "--draws: 0 is not a whole number above 0"),
        ("few_labeled", ("--rivals", "magic"), "--rivals: invalid choice: 'magic'"),
        ("folder_backends", ("--rows", -1), "--rows: -1 is not a whole number above 0"),
        ("generator_memory", ("--stages", 35), "--stages must be from 1 to 34"),
        ("heldout_networks", ("--jobs", -1), "--jobs: -1 is not a whole number above 0"),
        ("how_hard", ("--tasks", 0), "--tasks: 0 is not a whole number above 0"),
        ("inference_speed", ("--rounds", 0), "--rounds: 0 is not a whole number above 0"),
        ("large_table", ("--rows", "many"), "--rows: many is not a whole number above 0"),
        ("many_tables", ("--tables", 0), "--tables: 0 is not a whole number above 0"),
        ("mixtures_of_passes", ("--splits", 0), "--splits: 0 is not a whole number above 0"),
        ("overlapping_classes", ("--shares", 1), "--shares: 1 does not lie between 0 and 1"),
        ("precisions", ("--passes", 0), "--passes: 0 is not a whole number above 0"),
        ("prior_difficulty", ("--stages", 135), "--stages must be from 1 to 134"),
        ("rare_shares", ("--shares", "nan"), "--shares: nan does not lie between 0 and 1"),
        ("recipes", ("--seeds", 0), "--seeds: 0 is not a whole number above 0"),
        ("separate_classes", ("--draws", 0), "--draws: 0 is not a whole number above 0"),
        ("shard_codecs", ("--microbatches", 0), "--microbatches: 0 is not a whole number above 0"),
        ("table_kinds", ("--tables", 0), "--tables: 0 is not a whole number above 0"),
        ("two_codings", ("--splits", 0), "--splits: 0 is not a whole number above 0"),
        ("weak_spots", ("--jobs", 0), "--jobs: 0 is not a whole number above 0"),
        ("trainer_speed", ("--ways", "float32,magic"), "--ways has no 'magic': there are literal"),
    ],
)
def test_what_options_mean_is_checked_first(script, arguments, said, refused, tmp_path):
    needed = {
        "prior_extensions": ("--init", "default", "--data", tmp_path, "--out", tmp_path),
        "split_heads": ("--shards", tmp_path, "--out", tmp_path / "model.safetensors"),
        "calibrate_class_prior": ("--shards", tmp_path),
    }
    assert said in refused(script, *needed.get(script, ()), *arguments)
