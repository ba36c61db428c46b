"""What a run records and refuses: ledgers, comparisons, held-out figures, and full disks."""

import json
import shutil
import signal
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from prior_gen.generator import generate_shards
from puicl_config import InputError, load_config
from trainer import compare_runs, export_weights
from trainer.checkpoint import checkpoints
from trainer.environment import record_environment
from trainer.fit import fit
from trainer.ledger import kept_lines
from trainer.world import World

MAIN = Path(__file__).resolve().parents[2] / "trainer" / "main.py"


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


def test_a_runs_config_says_what_its_shards_are(tiny, tiny_yaml, run_command, arguments, tmp_path):
    wide = tiny.shards.model_copy(update={"x_dtype": "float32", "format": "webdataset"})
    generate_shards(tiny.model_copy(update={"shards": wide}), tmp_path / "wide", [1], jobs=1)
    command = arguments(tiny_yaml, tmp_path / "wide", tmp_path / "run", "train.max_steps=1")
    for _ in range(2):  # and the same command goes on
        done = run_command(*command)
        assert load_config(tmp_path / "run" / "config.yaml").shards == wide
        assert "holds x as float32, and is read so: shards.x_dtype=float16 is for" in done.stdout


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


def test_a_lost_ledger_is_told_and_its_rest_compared_by_step(
    tiny_yaml, all_shards, reference_run, run_command, tmp_path, arguments
):
    run = tmp_path / "run"
    shutil.copytree(reference_run, run)
    (run / "ledger.jsonl").unlink()
    shutil.rmtree(checkpoints(run / "checkpoints")[-1])
    stood = int(checkpoints(run / "checkpoints")[-1].name[-8:])
    with (run / "metrics.jsonl").open("r+") as file:
        file.write("\0")
    done = run_command(*arguments(tiny_yaml, all_shards, run))
    assert "metrics.jsonl: line 1 is damaged; it and the figures after it are cut" in done.stdout
    assert f"note: ledger.jsonl lacks {stood} of the {stood} steps" in done.stdout
    result = compare_runs(reference_run, run)
    assert (result.equal, result.steps) == (True, 18 - stood)
    with pytest.raises(InputError, match="lacks some of the first 3 steps"):
        export_weights(run, all_shards, tmp_path / "w.safetensors")
    whole = (reference_run / "ledger.jsonl").read_text().splitlines(keepends=True)
    (run / "ledger.jsonl").write_text(whole[0] + "nonsense\n" + whole[2])
    with pytest.raises(InputError, match=r"ledger.jsonl: line 2 is damaged"):
        compare_runs(run, run)
    (run / "environment.json").write_text("")
    done = run_command(*arguments(tiny_yaml, all_shards, run), check=False)
    assert done.returncode == 2
    assert "environment.json is damaged" in done.stderr


@pytest.mark.parametrize("content", ["", "{}", "[1]", "null"])
def test_a_list_of_environments_that_is_none_is_damaged(tmp_path, content):
    (tmp_path / "environment.json").write_text(content)
    with pytest.raises(InputError, match=r"environment.json is damaged: put it back"):
        record_environment(tmp_path / "environment.json", {"torch": "2"}, 0)


@pytest.mark.parametrize("line", ["{}", "[]", "1", '{"step": "1"}', '{"step": null}'])
def test_a_line_without_the_number_of_a_step_is_damaged(tmp_path, line):
    (tmp_path / "ledger.jsonl").write_text('{"step": 0}\n' + line + "\n")
    lines, damage = kept_lines(tmp_path / "ledger.jsonl", 5)
    assert lines == [{"step": 0}]
    assert "line 2 is damaged" in str(damage)


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


def test_a_finished_run_started_again_records_nothing_twice(
    tiny_yaml, tiny, all_shards, run_command, tmp_path, arguments
):
    generate_shards(tiny, tmp_path / "heldout", [1], split="heldout", jobs=1)
    command = arguments(
        tiny_yaml, all_shards, tmp_path / "run", f"train.heldout={tmp_path / 'heldout'}"
    )
    run_command(*command)
    before = [line["step"] for line in heldout_lines(tmp_path / "run")]
    newest = checkpoints(tmp_path / "run" / "checkpoints")[-1].stat()
    done = run_command(*command)
    assert checkpoints(tmp_path / "run" / "checkpoints")[-1].stat().st_ino == newest.st_ino
    assert "from step 18 to 18 on 1 process\n" in done.stdout
    assert [line["step"] for line in heldout_lines(tmp_path / "run")] == before
    assert before[-1] == 18
    done = run_command(*command, "train.max_steps=3")
    assert "stands at step 18 already, beyond train.max_steps=3" in done.stdout


# The trainer, killed as it begins step 12, two after a checkpoint.
KILLED = """
import os, signal
import trainer.fit as module
from trainer.cli import main

whole = module.microbatch_gradient

def killing(state, *rest):
    if state.step == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(state, *rest)

module.microbatch_gradient = killing
main()
"""


def test_tensorboard_of_a_killed_run_has_each_figure_once(
    tiny_yaml, tiny, all_shards, run_command, tmp_path, arguments
):
    generate_shards(tiny, tmp_path / "heldout", [1], split="heldout", jobs=1)
    run, script = tmp_path / "run", tmp_path / "killed.py"
    script.write_text(KILLED)
    options = ("log_every=1", "heldout_every=5", f"heldout={tmp_path / 'heldout'}")
    options += ("digest_every=4",)
    _, *rest = arguments(tiny_yaml, all_shards, run, *(f"train.{option}" for option in options))
    done = run_command(script, *rest, check=False)
    assert done.returncode == -signal.SIGKILL
    for _ in range(2):  # and once it has ended
        run_command(MAIN, *rest)
    board = EventAccumulator(str(run / "tensorboard")).Reload()
    assert [event.step for event in board.Scalars("loss")] == [*range(1, 19)]
    assert [event.step for event in board.Scalars("heldout/auc")] == [5, 10, 15, 18]
    ledger = map(json.loads, (run / "ledger.jsonl").read_text().splitlines())
    # The plan's last step has its digest, whatever their distance.
    assert [line["step"] for line in ledger if "weights" in line] == [3, 7, 11, 15, 17]


def test_the_table_at_the_end_has_the_first_losses_and_the_last(tiny, all_shards, tmp_path, capsys):
    changes = {"max_steps": 3, "log_every": 5, "device": "cpu", "precision": "float32"}
    config = tiny.model_copy(update={"train": tiny.train.model_copy(update=changes)})
    fit(config, all_shards, tmp_path / "run", World(0, 1, torch.device("cpu")))
    lines = (tmp_path / "run" / "ledger.jsonl").read_text().splitlines()
    a, b, c = (float.fromhex(json.loads(line)["loss"]) for line in lines)
    told = f"{(a + b) / 2:.4f} in the first 2 steps, {(b + c) / 2:.4f} in the last"
    assert told in capsys.readouterr().out


def heldout_lines(run):
    """The lines of metrics.jsonl with figures of held-out tasks."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if "heldout_loss" in line]


def test_a_refused_start_leaves_no_folder(tiny_yaml, all_shards, refused, tmp_path, arguments):
    sentences = {
        f"train.heldout={all_shards}": "whose split is train; make held-out tasks with",
        "train.heldout=nowhere": (
            "train.heldout: nowhere holds no shards: there is no manifest.json; make held-out "
            "tasks with, say, `prior-gen --config CONFIG --split heldout --stages 3 --out FOLDER`"
        ),
        "train.init_from=nowhere": "there is no checkpoint nowhere",
        "train.where=d > 99": "d > 99",
        "train={cuda_graphs: true, reveal: both}": "cuda_graphs computes the plain loss alone",
    }
    (tmp_path / "mine").mkdir()  # a folder that was there stays
    (tmp_path / "link").symlink_to("mine")
    cases = [(out, case) for out in ("run", "mine", "link") for case in sentences]
    commands = (arguments(tiny_yaml, all_shards, tmp_path / out, case) for out, case in cases)
    for (_, case), said in zip(cases, refused(*commands), strict=True):
        assert sentences[case] in said
    assert not (tmp_path / "run").exists()
    assert (tmp_path / "mine").is_dir()


def test_entries_that_a_run_has_read_are_needed_and_parts_are_not(
    tiny_yaml, own_shards, reference_run, run_command, tmp_path, arguments, run_bytes
):
    run = tmp_path / "run"
    command = arguments(tiny_yaml, own_shards, run)
    # In the middle of stage 2, of which the first part is read.
    run_command(*command, "train.max_steps=6")
    read = [
        path
        for stage in ("1-*", "2-part-000*")
        for path in (own_shards / "parts").glob(f"stage-000{stage}")
    ]
    assert len(read) > 2
    for path in read:
        shutil.rmtree(path)
    hidden = tmp_path / "hidden.json"
    entry = own_shards / "entries" / "stage-0001-part-000.json"
    entry.rename(hidden)
    done = run_command(*command, check=False)
    assert done.returncode == 2
    assert "the files in entries/ are needed to its end" in done.stderr
    hidden.rename(entry)
    run_command(*command)
    assert run_bytes(run) == run_bytes(reference_run)
