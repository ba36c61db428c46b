"""One optimizer step, written out by hand; and a whole run as nothing but such steps."""

import math
import os
import platform
from pathlib import Path

import numpy as np
import pytest
import torch

from puicl_config import InputError, TrainConfig, load_config, run_digest
from puicl_model import weights_digest
from puicl_model.precision import computed_in, multiplies_bfloat16
from shard_io import open_shards
from trainer import cli
from trainer.checkpoint import checkpoints, load_checkpoint
from trainer.cli import _resolve
from trainer.gradient import microbatch_gradient, tasks_together
from trainer.ledger import read_ledger
from trainer.loader import Batch, load
from trainer.reveal import revealed_share
from trainer.sampler import addresses_of_step
from trainer.schedule import learning_rate
from trainer.state import TrainState
from trainer.world import choose_algorithms

CPU = torch.device("cpu")


@pytest.fixture
def settings(tiny_yaml):
    return _resolve(load_config(tiny_yaml), "cpu")


def flat(state):
    return torch.cat([p.detach().flatten() for p in state.parameters.values()]).double().numpy()


def flat_ema(state):
    return torch.cat([t.flatten() for t in state.ema.values()]).double().numpy()


def test_an_update_is_clipped_adamw_and_the_ema_follows_the_weights(settings):
    train = settings.train
    state = TrainState(settings, CPU)
    weights, ema = flat(state), flat_ema(state)
    np.testing.assert_array_equal(weights, ema)  # the average starts at the first weights
    m, v = np.zeros_like(weights), np.zeros_like(weights)
    rng = np.random.default_rng(0)
    for t, (size, rate) in enumerate([(3.0, 1e-2), (0.5, 3e-3), (1e-4, 2e-3)], start=1):
        gradient = rng.standard_normal(len(weights))
        gradient *= size / np.linalg.norm(gradient)
        norm = state.update(torch.from_numpy(gradient).float(), rate)
        assert norm.item() == pytest.approx(size, rel=1e-5)
        clipped = gradient * min(1.0, 1.0 / size)
        m = 0.9 * m + 0.1 * clipped
        v = 0.95 * v + 0.05 * clipped**2
        weights = weights * (1 - rate * 1e-4)
        step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.95**t)) + train.adam_epsilon)
        weights = weights - rate * step
        ema = 0.95 * ema + 0.05 * weights
        np.testing.assert_allclose(flat(state), weights, atol=2e-6)
        np.testing.assert_allclose(flat_ema(state), ema, atol=2e-6)


def test_the_loss_is_the_mean_cross_entropy_of_the_unlabelled_rows(settings, all_shards):
    state = TrainState(settings, CPU)
    batch = load(open_shards(all_shards), (1, 0, 0))
    vector = microbatch_gradient(state, batch, settings.train)
    with torch.no_grad():
        logits = state.model(batch.x, batch.n_labeled).double()
    per_task = []
    for task_logits, labels in zip(logits, batch.y, strict=True):
        losses = [
            math.log(sum(math.exp(value) for value in row)) - row[label]
            for row, label in zip(task_logits.tolist(), labels.tolist(), strict=True)
        ]
        per_task.append(sum(losses) / len(losses))
    assert vector[-1].item() == pytest.approx(sum(per_task) / len(per_task), abs=1e-6)


@pytest.mark.parametrize(
    ("override", "share"),
    [
        ("train.seed=0", 0.0),
        ("model.reveals_negatives=true", 0.5),
        ("train.self_distillation={weight: 0.5, passes: 2}", 0.0),
    ],
)
def test_tasks_that_pass_in_slices_have_the_loss_and_gradient_of_all_at_once(
    tiny_yaml, all_shards, override, share
):
    settings = _resolve(load_config(tiny_yaml, [override]), "cpu")
    state = TrainState(settings, CPU)
    batch = load(open_shards(all_shards), (3, 0, 0))
    assert len(batch.x) == 3
    whole, *sliced = (
        microbatch_gradient(
            state, batch, settings.train.model_copy(update={"tasks_per_forward": tasks}), share
        )
        for tasks in (3, 2, 1)
    )
    for vector in sliced:  # of two tasks and one, and of one each
        torch.testing.assert_close(vector, whole, atol=1e-6, rtol=1e-4)


def test_a_task_of_which_every_row_is_shown_adds_nothing_to_the_loss(tiny_yaml, all_shards):
    settings = _resolve(load_config(tiny_yaml, ["model.reveals_negatives=true"]), "cpu")
    state = TrainState(settings, CPU)
    batch = load(open_shards(all_shards), (3, 0, 0))
    y = batch.y.clone()
    y[0] = 0  # rows that were cut down may be of one class
    shown = y == 0
    vector = microbatch_gradient(state, batch._replace(y=y), settings.train, share=1.0)
    with torch.no_grad():
        losses = -state.model(batch.x, batch.n_labeled, shown).log_softmax(-1)[..., 1]
    means = [task[~mask].mean() for task, mask in zip(losses[1:], shown[1:], strict=True)]
    assert vector.isfinite().all()
    assert vector[-1].item() == pytest.approx(sum(means).item() / len(y), abs=1e-6)


@pytest.fixture
def bfloat16_everywhere(monkeypatch):
    """Computed in bfloat16 on whatever processor tests run."""
    monkeypatch.setattr("puicl_model.precision.multiplies_bfloat16", lambda: True)


@pytest.mark.usefixtures("bfloat16_everywhere")
def test_bfloat16_keeps_weights_gradients_and_loss_in_float32(settings, all_shards):
    state = TrainState(settings, CPU)
    batch = load(open_shards(all_shards), (1, 0, 0))
    exact = microbatch_gradient(state, batch, settings.train)
    rough = microbatch_gradient(
        state, batch, settings.train.model_copy(update={"precision": "bfloat16"})
    )
    assert rough.dtype == torch.float32
    assert all(p.dtype == torch.float32 for p in state.parameters.values())
    assert rough[-1].item() == pytest.approx(exact[-1].item(), abs=0.02)
    assert rough[-1].item() != exact[-1].item()
    cosine = torch.nn.functional.cosine_similarity(rough[:-1], exact[:-1], dim=0)
    assert cosine > 0.98


@pytest.mark.parametrize("fast", [True, False])
def test_where_bfloat16_is_slow_float32_is_computed_and_the_digest_stays(
    settings, all_shards, monkeypatch, fast
):
    monkeypatch.setattr("puicl_model.precision.multiplies_bfloat16", lambda: fast)
    state = TrainState(settings, CPU)
    batch = load(open_shards(all_shards), (1, 0, 0))
    exact = microbatch_gradient(state, batch, settings.train)
    asked = settings.train.model_copy(update={"precision": "bfloat16"})
    assert microbatch_gradient(state, batch, asked).equal(exact) != fast
    digests = {
        run_digest(settings.model_copy(update={"train": t})) for t in (asked, settings.train)
    }
    assert len(digests) == 2  # the run's is that of its config, whatever computes it
    assert computed_in("bfloat16", torch.device("cuda")) == "bfloat16"
    assert computed_in("float32", CPU) == "float32"


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the variable is one of x86 processors"
)
def test_the_trainer_says_what_it_computes_in_where_bfloat16_is_slow(
    tiny_yaml, all_shards, run_command, arguments, tmp_path, monkeypatch
):
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    overrides = ("train.precision=bfloat16", "train.max_steps=1")
    done = run_command(*arguments(tiny_yaml, all_shards, tmp_path / "run", *overrides))
    assert "the blocks are computed in float32" in done.stdout
    assert "precision: bfloat16" in (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("machine", "capability", "instructions", "fast"),
    [
        ("x86_64", "AVX512", True, True),
        ("x86_64", "AVX512", False, False),
        ("x86_64", "AVX2", True, False),
        ("AMD64", "DEFAULT", True, False),
        ("arm64", "DEFAULT", False, True),
    ],
)
def test_which_processors_multiply_bfloat16(monkeypatch, machine, capability, instructions, fast):
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("torch.backends.cpu.get_cpu_capability", lambda: capability)
    features = {"avx512bf16": instructions}
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_features", lambda: features)
    assert multiplies_bfloat16() == fast


@pytest.mark.usefixtures("bfloat16_everywhere")
def test_recomputing_changes_no_bit_and_no_digest(settings, all_shards):
    state = TrainState(settings, CPU)
    batch = load(open_shards(all_shards), (1, 0, 0))
    computed = []
    for block in state.model.blocks:  # but the last, of which no whole is computed
        block.register_forward_pre_hook(lambda *_: computed.append(1))
    for precision in ("float32", "bfloat16"):
        train = settings.train.model_copy(update={"precision": precision})
        kept = microbatch_gradient(state, batch, train)
        once = len(computed)
        assert microbatch_gradient(state, batch, train).equal(kept)
        computed.clear()
        again = train.model_copy(update={"recompute": True})
        assert microbatch_gradient(state, batch, again).equal(kept)
        assert len(computed) == 2 * once > 0
        computed.clear()
    settings = settings.model_copy(update={"train": train})
    recomputing = settings.model_copy(update={"train": again})
    assert run_digest(recomputing) == run_digest(settings)


def test_modes_that_change_bits_have_digests_of_their_own(tiny_yaml):
    digests = {
        run_digest(_resolve(load_config(tiny_yaml, overrides), "cpu"))
        for overrides in (
            [],
            ["train.precision=bfloat16"],
            ["train.deterministic=false"],
            ["train.compile=true"],
            ["train.tasks_per_forward=1"],
        )
    }
    assert len(digests) == 5


def test_deterministic_algorithms_are_what_the_config_says(monkeypatch):
    before, variable = torch.are_deterministic_algorithms_enabled(), "CUBLAS_WORKSPACE_CONFIG"
    try:
        for wanted in (True, False):
            monkeypatch.setenv(variable, "")  # and put back as it was, whatever is set meanwhile
            monkeypatch.delenv(variable)
            choose_algorithms(wanted)
            assert (variable in os.environ) == wanted
            assert torch.are_deterministic_algorithms_enabled() == wanted
            assert not torch.backends.cuda.matmul.allow_tf32
    finally:
        torch.use_deterministic_algorithms(before)


def test_algorithms_that_cost_time_and_change_no_bit_are_off_and_a_users_choice_stays(monkeypatch):
    memory, before = torch.utils.deterministic, torch.are_deterministic_algorithms_enabled()
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    monkeypatch.setattr(memory, "fill_uninitialized_memory", True)
    cudnn = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        torch.backends.cuda.enable_cudnn_sdp(True)
        choose_algorithms(True)
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":16:8"
        assert not memory.fill_uninitialized_memory
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(cudnn)
        torch.use_deterministic_algorithms(before)


def test_threads_and_algorithms_are_set_before_the_first_step(tiny_yaml, tmp_path, monkeypatch):
    done = []
    for name in ("set_num_threads", "use_deterministic_algorithms"):
        monkeypatch.setattr(torch, name, lambda value, name=name: done.append((name, value)))
    monkeypatch.setattr("trainer.cli.keep_freed_memory", lambda: done.append("freed memory"))
    monkeypatch.setattr("trainer.cli.heed_end_of_torchrun", lambda: done.append("torchrun"))
    monkeypatch.setattr("trainer.cli.fit", lambda *_: done.append("fit"))
    overrides = ["train.threads_per_process=3", "train.deterministic=false", "train.device=cpu"]
    cli.train(overrides, str(tiny_yaml), "shards", tmp_path)
    assert done.pop() == "fit"
    threads, algorithms = ("set_num_threads", 3), ("use_deterministic_algorithms", False)
    assert {threads, algorithms, "freed memory", "torchrun"} <= set(done)


@pytest.mark.parametrize(
    "words",
    [
        ["prior.seed=7", "train.where=d<9"],
        ["--set", "prior.seed=7", "--set=train.where=d<9"],
        ["prior.seed=7", "--set", "train.where=d<9"],
    ],
)
def test_overrides_are_read_with_and_without_the_option_of_prior_gen(
    words, tiny_yaml, tmp_path, monkeypatch
):
    for name in ("keep_freed_memory", "choose_algorithms", "torch.set_num_threads"):
        monkeypatch.setattr(f"trainer.cli.{name}", lambda *_: None)
    missing = tmp_path / "none"
    with pytest.raises(InputError) as error:
        cli.app(
            ["--config", str(tiny_yaml), "--shards", str(missing), "--out", str(tmp_path), *words],
            standalone_mode=False,
        )
    assert f"--config {tiny_yaml} --set prior.seed=7 --stages" in str(error.value)

    seen = []
    monkeypatch.setattr("trainer.cli.fit", lambda config, *_: seen.append(config))
    cli.app(["--config", str(tiny_yaml), *words], standalone_mode=False)
    assert (seen[0].prior.seed, seen[0].train.where) == (7, "d<9")


def test_a_run_lies_where_it_is_asked_for_or_under_its_name(tiny_yaml, tmp_path, monkeypatch):
    places = []
    for name in ("keep_freed_memory", "choose_algorithms", "torch.set_num_threads"):
        monkeypatch.setattr(f"trainer.cli.{name}", lambda *_: None)
    monkeypatch.setattr("trainer.cli.fit", lambda config, shards, out, world: places.append(out))
    monkeypatch.setenv("HOME", str(tmp_path))
    for out in (Path("~/mine"), Path("here"), None):
        cli.train(["train.device=cpu"], str(tiny_yaml), "shards", out)
    assert places == [tmp_path / "mine", Path("here"), Path("runs") / "tiny"]


def test_a_step_of_a_large_microbatch_passes_few_tasks_at_a_time_on_a_cpu(settings):
    state = TrainState(settings, CPU)
    for tasks, rows, d, together in ((24, 900, 20, 1), (8, 100, 3, 8), (8, 300, 9, 2)):
        batch = Batch((1, 0, 0), torch.zeros(tasks, rows, d), torch.zeros(tasks, rows - 5), 5)
        assert tasks_together(state.model, batch, CPU) == together
        assert tasks_together(state.model, batch, torch.device("cuda")) == tasks


def test_thinking_rows_count_among_the_rows_that_pass_together(tiny_yaml):
    batch = Batch((1, 0, 0), torch.zeros(20, 100, 3), torch.zeros(20, 95), 5)
    for thinking_rows, together in ((0, 20), (28, 10)):
        config = load_config(tiny_yaml, [f"model.thinking_rows={thinking_rows}"])
        state = TrainState(_resolve(config, "cpu"), CPU)
        assert tasks_together(state.model, batch, CPU) == together


MEMORY = """
import torch
from puicl_config import load_config
from trainer.gradient import microbatch_gradient
from trainer.loader import Batch
from trainer.state import TrainState

overrides = ["device=cpu", "precision={precision}"]
overrides += ["tasks_per_forward={tasks_per_forward}", "recompute={recompute}"]
config = load_config("paper", ["train." + override for override in overrides])
state = TrainState(config, torch.device("cpu"))
x = torch.randn(24, 900, 20)  # P = 300, eta = 2, d = 20
batch = Batch((134, 0, 0), x, (x[:, 300:].sum(-1) > 0).long(), 300)
assert microbatch_gradient(state, batch, config.train).isfinite().all()
line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(line.split()[1]) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "tasks_per_forward", "recompute", "gigabytes"),
    [("bfloat16", "null", "false", 2), ("float32", "null", "false", 3), ("bfloat16", 6, "true", 6)],
)
def test_the_papers_largest_step_trains_in_a_few_gigabytes(
    run_command, precision, tasks_per_forward, recompute, gigabytes
):
    code = MEMORY.format(
        precision=precision, tasks_per_forward=tasks_per_forward, recompute=recompute
    )
    assert float(run_command("-c", code).stdout) < gigabytes


def test_auto_precision_is_float32_on_cpu_and_bfloat16_on_cuda(tiny):
    for device, precision in (("cpu", "float32"), ("cuda", "bfloat16")):
        resolved = _resolve(tiny, device).train
        assert (resolved.device, resolved.precision) == (device, precision)
        kept = tiny.model_copy(
            update={"train": tiny.train.model_copy(update={"precision": "float32"})}
        )
        assert _resolve(kept, device).train.precision == "float32"


def test_the_seed_of_training_draws_the_weights(settings):
    def weights(seed):
        train = settings.train.model_copy(update={"seed": seed})
        return flat(TrainState(settings.model_copy(update={"train": train}), CPU))

    np.testing.assert_array_equal(weights(0), weights(0))
    assert not np.array_equal(weights(0), weights(1))


def test_a_run_is_nothing_but_its_steps(tiny_yaml, all_shards, run_command, tmp_path):
    """Both phases: mean gradient over a step's microbatches, the schedule's rate, one state.

    Of a run that at first shows negatives.
    """
    out = tmp_path / "run"
    shown = ("model.reveals_negatives=true", "train.reveal_negatives={share: 0.5, until: 0.5}")
    settings = _resolve(load_config(tiny_yaml, list(shown)), "cpu")
    main = Path(__file__).resolve().parent.parent.parent / "trainer" / "main.py"
    options = ("--config", tiny_yaml, "--shards", all_shards, "--out", out)
    run_command(main, *options, *shown, "train.digest_every=1")
    lines = list(read_ledger(out / "ledger.jsonl"))
    torch.set_num_threads(1)
    state, reader = TrainState(settings, CPU), open_shards(all_shards)
    prior, train = settings.prior, settings.train
    for step in range(prior.total_steps):
        share = revealed_share(prior, train, step)
        assert (share > 0) == (step < 9)
        vectors = [
            microbatch_gradient(state, load(reader, address), train, share)
            for address in addresses_of_step(prior, train, step)
        ]
        total = vectors[0].clone()
        for vector in vectors[1:]:
            total += vector
        total /= len(vectors)
        assert float.fromhex(lines[step]["loss"]) == total[-1].item()
        rate = learning_rate(prior, train, step)
        assert float.fromhex(lines[step]["learning_rate"]) == rate
        norm = state.update(total[:-1], rate)
        assert float.fromhex(lines[step]["gradient_norm"]) == norm
        assert lines[step]["weights"] == weights_digest(state.parameters), step
    _, tensors = load_checkpoint(checkpoints(out / "checkpoints")[-1])
    assert weights_digest(tensors) == weights_digest(state.tensors())


def test_paper_yamls_optimizer_is_plain_adamw_with_nothing_revealed():
    train = load_config("paper").train
    assert train.optimizer == "adamw"
    assert train.reveal_negatives.share == 0
    assert TrainConfig().init_from is None
