"""`puicl plot`, `puicl average`: what they write, and what they refuse."""

import json
from pathlib import Path

import matplotlib
import pytest
import torch
from matplotlib import pyplot
from PIL import Image
from typer.testing import CliRunner

from puicl_cli.main import app
from puicl_config import Config, InputError, ModelConfig, config_yaml
from puicl_model import PUICL, load_model
from trainer import average_checkpoints, draw_curves
from trainer.checkpoint import CheckpointState, Lineage, read_state, save_checkpoint
from trainer.plot import read_curves

SMALL = ModelConfig(embedding_size=8, layers=1, heads=2, feedforward_size=8)


def make_run(folder, losses, heldout=()):
    folder.mkdir()
    lines = [json.dumps({"step": t, "loss": loss.hex()}) for t, loss in enumerate(losses)]
    (folder / "ledger.jsonl").write_text("\n".join(lines) + "\n")
    figures = [{"step": 1, "seconds": 0.5, "loss": 0.7}]
    figures += [{"step": s, "seconds": t, "heldout_auc": a} for s, t, a in heldout]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in figures))
    return folder


def drawn_figures(monkeypatch):
    """A list that from now on gets the figures that are drawn."""
    figures = []
    monkeypatch.setattr(
        "puicl_config.pictures.as_png", lambda figure, dpi: figures.append(figure) or b""
    )
    return figures


def test_curves_are_the_ledgers_losses_and_the_metrics_auc(tmp_path):
    run = make_run(tmp_path / "a", [0.7, 0.6, 0.5], [(2, 1.5, 0.6), (3, 2.5, 0.7)])
    curves = read_curves(run)
    assert curves.loss.tolist() == [0.7, 0.6, 0.5]
    assert curves.heldout_auc.tolist() == [0.6, 0.7]
    assert curves.heldout_steps.tolist() == [2, 3]
    assert curves.heldout_seconds.tolist() == [1.5, 2.5]
    assert len(read_curves(make_run(tmp_path / "b", [0.7])).heldout_auc) == 0


def test_a_curve_of_held_out_auc_is_broken_where_the_tasks_became_others(tmp_path):
    run = make_run(tmp_path / "a", [0.7])
    sets = [None, "a", "a", "b", "b"]  # older runs do not say which
    with (run / "metrics.jsonl").open("a") as file:
        for step, name in enumerate(sets, start=2):
            line = {"step": step, "seconds": step + 0.5, "heldout_auc": step / 10}
            file.write(json.dumps({**line, "heldout_set": name} if name else line) + "\n")
    curves = read_curves(run)
    assert str(curves.heldout_auc.tolist()) == "[0.2, 0.3, 0.4, nan, 0.5, 0.6]"
    assert curves.heldout_steps.tolist() == [2, 3, 4, 5, 5, 6]
    draw_curves([run], tmp_path / "broken.png", smooth=1)


def test_each_panel_draws_what_it_is_of(tmp_path, monkeypatch):
    run = make_run(tmp_path / "a", [0.8, 0.6, 0.1], [(2, 15.0, 0.6), (3, 25.0, 0.7)])
    figures = drawn_figures(monkeypatch)
    draw_curves([run], tmp_path / "a.png", smooth=2)
    drawn = [axis.lines[0].get_xydata().tolist() for axis in figures[0].axes]
    assert drawn[0] == [[0, 0.8], [1, pytest.approx(0.7)], [2, pytest.approx(0.35)]]
    assert drawn[1:] == [[[2, 0.6], [3, 0.7]], [[15, 0.6], [25, 0.7]]]


def test_a_callers_matplotlib_is_left_as_it_is(tmp_path):
    run = make_run(tmp_path / "a", [0.8, 0.6])
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"backend": "svg", "lines.color": "red"}):
        held = dict(matplotlib.rcParams)
        draw_curves([run], tmp_path / "a.png", smooth=1)
        assert dict(matplotlib.rcParams) == held != before
    assert pyplot.get_fignums() == []


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path, monkeypatch):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    one, two = (make_run(tmp_path / folder / "run", [0.7]) for folder in ("one", "two"))
    other = make_run(tmp_path / "other", [0.7])
    figures = drawn_figures(monkeypatch)
    for runs in ([one, two], [one, other]):
        draw_curves(runs, tmp_path / "a.png", smooth=1)
    named = [figure.axes[0].get_legend_handles_labels()[1] for figure in figures]
    assert named == [[str(one), str(two)], ["run", "other"]]


def test_plot_draws_three_panels_with_held_out_figures_and_one_without(tmp_path):
    a = make_run(tmp_path / "a", [0.7, 0.6, 0.5], [(2, 1.5, 0.6), (3, 2.5, 0.7)])
    b = make_run(tmp_path / "b", [0.7, 0.65])
    done = CliRunner().invoke(app, ["plot", str(a), str(b), "--out", str(tmp_path / "two.png")])
    assert done.exit_code == 0, done.output
    draw_curves([b], tmp_path / "one.png", smooth=1)
    widths = [Image.open(tmp_path / name).width for name in ("two.png", "one.png")]
    assert widths[0] > 2 * widths[1]


@pytest.mark.parametrize(
    ("out", "losses", "sentence"),
    [
        ("x.pdf", [0.7], "give a file that ends in .png"),
        ("nowhere/x.png", [0.7], "does not exist"),
        ("x.png", None, "holds no run: there is no ledger.jsonl"),
    ],
)
def test_plot_refuses_what_it_cannot_draw(tmp_path, out, losses, sentence):
    run = tmp_path / "run"
    if losses is not None:
        make_run(run, losses)
    with pytest.raises(InputError, match=sentence):
        draw_curves([run], tmp_path / out, smooth=1)


# What the run whose checkpoints are averaged began from.
BEFORE = {"step": 7, "tensors_digest": "of another run"}


def make_checkpoints(run, steps, digest="run", where=None):
    run.mkdir(exist_ok=True)
    config = Config(model=SMALL)
    (run / "config.yaml").write_text(config_yaml(config))
    saved = []
    for step in steps:
        weights = PUICL(SMALL, torch.Generator().manual_seed(step)).state_dict()
        tensors = {f"model.{name}": tensor for name, tensor in weights.items()}
        tensors |= {f"ema.{name}": 2 * tensor for name, tensor in weights.items()}
        about = CheckpointState(
            step, digest, "plan", "data", lineage=Lineage((BEFORE,)), where=where
        )
        saved.append(save_checkpoint(run / "checkpoints", about, tensors))
    return saved


def test_average_is_the_mean_of_the_checkpoints_weights_and_loads_as_a_model(tmp_path, monkeypatch):
    saved = make_checkpoints(tmp_path / "run", [1, 2, 4])
    out = tmp_path / "mean.safetensors"
    command = ["average", str(tmp_path / "run"), "--out", str(out)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "the mean of 3 checkpoints, steps 1, 2, 4" in done.output
    model, card = load_model(out)
    assert card["average_of"] == {"weights": "model", "steps": [1, 2, 4]}
    assert card["steps"] == 4
    assert card["lineage"] == [BEFORE, *(read_state(path).as_ancestor() for path in saved)]
    weights = [PUICL(SMALL, torch.Generator().manual_seed(s)).state_dict() for s in (1, 2, 4)]
    for name, tensor in model.state_dict().items():
        mean = torch.stack([each[name].double() for each in weights]).sum(0) / 3
        assert torch.equal(tensor, mean.float()), name
    assert average_checkpoints([saved[2], saved[0]], out) == [1, 4]
    assert [ancestor["step"] for ancestor in load_model(out)[1]["lineage"]] == [7, 1, 4]
    monkeypatch.chdir(saved[0].parent)
    assert average_checkpoints([Path(saved[0].name), Path(saved[2].name)], out) == [1, 4]
    assert average_checkpoints(saved[:1], out, "ema") == [1]
    first = load_model(out)[0].state_dict()
    assert all(torch.equal(first[name], 2 * weights[0][name]) for name in first)


def test_a_mean_of_checkpoints_says_what_of_the_plan_they_were_trained_on(tmp_path):
    for name, where in (("slice", "d > 3"), ("whole", None)):
        make_checkpoints(tmp_path / name, [1, 2], where=where)
        out = tmp_path / f"{name}.safetensors"
        average_checkpoints([tmp_path / name], out)
        assert load_model(out)[1].get("where") == where


def test_average_refuses_other_runs_checkpoints_and_what_is_none(tmp_path):
    a = make_checkpoints(tmp_path / "a", [1])
    b = make_checkpoints(tmp_path / "b", [2], digest="another")
    out = tmp_path / "mean.safetensors"
    for sources, sentence in (
        ([*a, *b], "are of different runs"),
        ([*a, *a], "given twice: steps 1, 1"),
        ([tmp_path], "neither a checkpoint nor a run"),
    ):
        with pytest.raises(InputError, match=sentence):
            average_checkpoints(sources, out)
    with pytest.raises(InputError, match=r"ends in \.safetensors"):
        average_checkpoints(a, tmp_path / "mean.pt")
    assert not out.exists()


def test_plot_and_average_pass_on_what_they_are_told(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("trainer.draw_curves", lambda *given: told.append(given))
    monkeypatch.setattr("trainer.average_checkpoints", lambda *given: told.append(given) or [1, 2])
    run, out = tmp_path / "run", tmp_path / "out"
    for words in (
        ["plot", run, "--out", out, "--smooth", 7],
        ["average", run, "--out", out, "--of", "ema"],
    ):
        assert CliRunner().invoke(app, [str(word) for word in words]).exit_code == 0
    assert told == [([run], out, 7), ([run], out, "ema")]
