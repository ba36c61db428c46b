"""What `puicl compare` says of two runs."""

import json
import shutil

import pytest

from puicl_config import InputError
from trainer import compare_runs
from trainer.checkpoint import checkpoints


def test_compare_names_the_first_differing_step_and_what_differs(
    tiny_yaml, all_shards, reference_run, run_command, tmp_path, arguments
):
    out = tmp_path / "other"
    run_command(*arguments(tiny_yaml, all_shards, out, "train.weight_decay=0.5"))
    result = compare_runs(reference_run, out)
    # Weight decay acts after the first gradient: the weights part first, then the next loss.
    assert (result.step, result.field) == (1, "loss")
    code = "from puicl_cli.main import main; main()"
    picture = tmp_path / "curves.png"
    command = ("-c", code, "compare", reference_run, out, "--plot", picture)
    done = run_command(*command, check=False)
    assert done.returncode == 1
    assert "part at step 1 in the loss" in done.stdout
    assert "their configs differ: train.weight_decay is 0.0001 and 0.5" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    done = run_command("-c", code, "compare", reference_run, reference_run)
    assert (
        "equal to the bit over their 18 common steps (6 digests of the weights and" in done.stdout
    )
    assert "; their configs are the same" in done.stdout


@pytest.fixture
def twin(reference_run, tmp_path):
    """A copy of the reference run, to be altered."""
    return shutil.copytree(reference_run, tmp_path / "twin")


def test_compare_names_other_storage_and_another_start(reference_run, twin):
    config = twin / "config.yaml"
    text = config.read_text()
    config.write_text(text.replace("x_dtype: float16", "x_dtype: float32"))
    said = compare_runs(reference_run, twin).sentence
    assert said.endswith("; their configs differ: shards.x_dtype is float16 and float32")
    config.write_text(text.replace("init_from: null", "init_from: runs/a"))
    said = compare_runs(reference_run, twin).sentence
    assert said.endswith("; their configs differ: train.init_from is null and runs/a")


def test_compare_knows_starts_by_their_digests(twin, tmp_path):
    for name, parent in (("a", "1" * 64), ("b", "2" * 64), ("c", "1" * 64)):
        run = shutil.copytree(twin, tmp_path / name)
        text = (run / "config.yaml").read_text()
        (run / "config.yaml").write_text(text.replace("init_from: null", f"init_from: runs/{name}"))
        for checkpoint in checkpoints(run / "checkpoints"):
            state = json.loads((checkpoint / "state.json").read_text())
            state["lineage"] = {"ancestors": [{"tensors_digest": parent}]}
            state.pop("state_digest", None)
            (checkpoint / "state.json").write_text(json.dumps(state))
    said = compare_runs(tmp_path / "a", tmp_path / "b").sentence
    starts = f"of digest {'1' * 16} and of digest {'2' * 16}"
    assert said.endswith(f"; their configs differ: train.init_from is {starts}")
    assert compare_runs(tmp_path / "a", tmp_path / "c").sentence.endswith("configs are the same")


def test_compare_sees_what_the_steps_do_not_tell(
    tiny_yaml, all_shards, reference_run, run_command, tmp_path, arguments
):
    out = tmp_path / "other"
    run_command(*arguments(tiny_yaml, all_shards, out, "train.ema_decay=0.5"))
    result = compare_runs(reference_run, out)
    assert (result.equal, result.step, result.field) == (False, 17, "average")
    assert "their configs differ: train.ema_decay is" in result.sentence
    (out / "model.json").write_text("{")
    with pytest.raises(InputError, match=r"model.json is damaged"):
        compare_runs(reference_run, out)


def ledger_of(run, *lines, **card):
    """A run's folder with these lines, and a card where one is given."""
    run.mkdir()
    common = {"microbatches": [[1, 0, 0]], "data": "d", "learning_rate": (0.5).hex()}
    values = {**common, "loss": (0.25).hex(), "gradient_norm": (2.0).hex()}
    lines = [{"step": step, **values, **line} for step, line in enumerate(lines)]
    (run / "ledger.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if card:
        (run / "model.json").write_text(json.dumps(card))
    return run


# In the order in which a step comes to them.
FIELDS = ["microbatches", "data", "learning_rate", "loss", "gradient_norm", "weights"]


@pytest.mark.parametrize("field", FIELDS)
def test_compare_names_the_first_field_that_differs_and_the_last_equal_weights(tmp_path, field):
    other = {name: (8.0).hex() for name in FIELDS[FIELDS.index(field) :]}
    same = [{"weights": "v"}, {}, {"weights": "u"}, {}]
    a = ledger_of(tmp_path / "a", *same, {"weights": "w"})
    b = ledger_of(tmp_path / "b", same[0], {"weights": "x"}, {}, {}, other)
    found = compare_runs(a, b)
    assert (found.equal, found.steps, found.step, found.field) == (False, 4, 4, field)
    assert found.sentence.endswith("; their weights were last seen equal after step 0")


@pytest.mark.parametrize("field", FIELDS[:-1])
def test_compare_names_a_line_that_lacks_a_field(tmp_path, field):
    runs = [ledger_of(tmp_path / name, {}, {}) for name in "ab"]
    path = runs[1] / "ledger.jsonl"
    first, second = path.read_text().splitlines()
    kept = {name: value for name, value in json.loads(second).items() if name != field}
    path.write_text(f"{first}\n{json.dumps(kept)}\n")
    with pytest.raises(InputError, match=f"ledger.jsonl: the line of step 1 has no '{field}'"):
        compare_runs(*runs)


@pytest.mark.parametrize("loss", ["lost", "0x1p+9999"])
def test_compare_shows_a_loss_that_is_no_number_as_it_is(tmp_path, loss):
    a, b = ledger_of(tmp_path / "a", {"loss": loss}), ledger_of(tmp_path / "b", {})
    assert compare_runs(a, b).sentence.endswith(f"part at step 0 in the loss: {loss}, 0.25")


def in_environments(run, *stretches):
    """The run, with this list of environments."""
    (run / "environment.json").write_text(json.dumps(stretches))
    return run


@pytest.mark.parametrize(
    ("step", "ending"), [(1, ""), (2, "; their environments differ there: torch is 2.0 and 2.1")]
)
def test_compare_names_what_differs_in_the_environments_of_the_step_where_runs_part(
    tmp_path, step, ending
):
    lines = [{"weights": "v"}] * step + [{"loss": (1.0).hex()}]
    stretch = {"from_step": 0, "torch": "2.0", "tile_code": False, "llvmlite": "0.5"}
    a = in_environments(ledger_of(tmp_path / "a", *[{"weights": "v"}] * 5), stretch)
    later = {"from_step": 2, "torch": "2.1"}  # of a version that knew of neither of the others
    b = in_environments(ledger_of(tmp_path / "b", *lines), stretch, later)
    assert compare_runs(a, b).sentence.endswith(f"seen equal after step {step - 1}{ending}")


def test_compare_names_variables_and_instruction_sets_one_by_one(tmp_path):
    machines = (
        (["GenuineIntel", "avx2"], {"MKL_CBWR": "AVX2", "OMP_DYNAMIC": "true"}),
        (
            ["GenuineIntel", "avx2", "avx512f", "fma"],
            {"OMP_DYNAMIC": "true"},
        ),
    )
    a, b = (
        in_environments(
            ledger_of(tmp_path / name, {"loss": loss.hex()}),
            {"from_step": 0, "instruction_sets": sets, "variables": variables},
        )
        for name, loss, (sets, variables) in zip("ab", (1.0, 2.0), machines, strict=True)
    )
    assert compare_runs(a, b).sentence.endswith(
        f"their environments differ there: instruction_sets has avx512f, fma in {b} alone, "
        "MKL_CBWR is AVX2 and not set"
    )


def test_equal_runs_in_other_environments_are_equal_and_their_averages_may_part(tmp_path):
    a, b = (
        in_environments(
            ledger_of(tmp_path / name, {}, steps=1, weights_digest="v"),
            {"from_step": 0, "torch": version},
        )
        for name, version in (("a", "2.0"), ("b", "2.1"))
    )
    assert "environments" not in compare_runs(a, b).sentence
    (b / "model.json").write_text(json.dumps({"steps": 1, "weights_digest": "w"}))
    said = compare_runs(a, b).sentence
    assert said.endswith("v, w; their environments differ there: torch is 2.0 and 2.1")


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", "[]", "[{}]", '[{"from_step": "0", "torch": "1"}]', b"\xff", None]
)
def test_compare_says_nothing_of_environments_that_it_cannot_read(tmp_path, content):
    a = in_environments(ledger_of(tmp_path / "a", {}), {"from_step": 0, "torch": "2.0"})
    b = ledger_of(tmp_path / "b", {"loss": (1.0).hex()})
    if content is not None:
        whole = content if isinstance(content, bytes) else content.encode()
        (b / "environment.json").write_bytes(whole)
    for runs in ((a, b), (b, a)):
        assert "environments" not in compare_runs(*runs).sentence


@pytest.mark.parametrize(("steps", "equal"), [(1, True), (2, False)])
def test_compare_looks_at_averages_only_after_the_same_step(tmp_path, steps, equal):
    a = ledger_of(tmp_path / "a", {}, {}, steps=2, weights_digest="v")
    b = ledger_of(tmp_path / "b", *[{}] * steps, steps=steps, weights_digest="w")
    found = compare_runs(a, b)
    assert (found.equal, found.steps) == (equal, steps)
    assert ("moving average of the weights after step 1: v, w" in found.sentence) != equal


def test_runs_without_a_step_in_common_are_not_equal(tmp_path):
    a, b = ledger_of(tmp_path / "a", {}), ledger_of(tmp_path / "b", {"step": 1})
    found = compare_runs(a, b)
    assert (found.equal, found.steps) == (False, 0)
    assert found.sentence == f"{a} and {b} have no step in common"


@pytest.mark.parametrize(("weights", "steps"), [("v", 1), (None, 2)])
def test_only_runs_whose_weights_were_compared_are_called_equal_to_the_bit(
    tmp_path, weights, steps
):
    line = {"weights": weights} if weights else {}
    a = ledger_of(tmp_path / "a", line)
    b = ledger_of(tmp_path / "b", line, *[{}] * (steps - 1))
    found = compare_runs(a, b)
    assert found.equal
    assert ("equal to the bit" in found.sentence) == bool(weights)
    assert ("no digest of the weights is there to compare" in found.sentence) != bool(weights)
