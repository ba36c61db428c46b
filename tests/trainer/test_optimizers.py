"""The optimizers' settings reach them: by hand, with numbers that are nobody's defaults."""

import numpy as np
import pytest
import torch

from puicl_config import load_config
from trainer.cli import _resolve
from trainer.state import TrainState

SETTINGS = (
    *("train.beta1=0.6", "train.beta2=0.8", "train.adam_epsilon=0.01", "train.weight_decay=0.2"),
    *("train.clip_norm=0.5", "train.ema_decay=0.7"),
    *("train.muon_momentum=0.9", "train.muon_lr_ratio=3"),
)
RATE = 0.05


@pytest.fixture(params=["adamw", "muon"])
def state(tiny_yaml, request):
    config = load_config(tiny_yaml, [*SETTINGS, f"train.optimizer={request.param}"])
    return TrainState(_resolve(config, "cpu"), torch.device("cpu"))


def copied(tensors):
    return {name: tensor.detach().double().numpy().copy() for name, tensor in tensors.items()}


def of_muon(state):
    """Names of what Muon moves: the blocks' matrices, where it was asked for."""
    buffer = "momentum_buffer."
    return {name.removeprefix(buffer) for name in state.tensors() if name.startswith(buffer)}


def test_two_updates_are_those_of_the_configs_numbers(state):
    """Adam with decoupled decay (Loshchilov and Hutter, 2019), Muon's momentum, the average."""
    matrices = {n for n, p in state.parameters.items() if n.startswith("blocks.") and p.ndim == 2}
    theirs = of_muon(state)
    assert theirs in (set(), matrices)
    weights, ema = copied(state.parameters), copied(state.ema)
    m, v = ({name: np.zeros_like(w) for name, w in weights.items()} for _ in range(2))
    for t in (1, 2):
        gradient = torch.randn(state.gradient.shape, generator=torch.Generator().manual_seed(t))
        state.update(gradient, RATE)
        clipped = gradient.double().numpy()
        clipped *= 0.5 / np.linalg.norm(clipped)
        sizes = np.cumsum([w.size for w in weights.values()])[:-1]
        parts = np.split(clipped, sizes)
        for (name, w), part in zip(weights.items(), parts, strict=True):
            g = part.reshape(w.shape)
            if name in theirs:
                m[name] = 0.9 * m[name] + 0.1 * g
                weights[name] = copied(state.parameters)[name]  # of PyTorch's own, on a CPU
            else:
                m[name] = 0.6 * m[name] + 0.4 * g
                v[name] = 0.8 * v[name] + 0.2 * g**2
                step = (m[name] / (1 - 0.6**t)) / (np.sqrt(v[name] / (1 - 0.8**t)) + 0.01)
                weights[name] = w * (1 - RATE * 0.2) - RATE * step
            ema[name] = 0.7 * ema[name] + 0.3 * weights[name]
    found = copied(state.tensors())
    for name in weights:
        moment = "momentum_buffer" if name in theirs else "exp_avg"
        np.testing.assert_allclose(found[f"{moment}.{name}"], m[name], rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(found[f"model.{name}"], weights[name], atol=2e-6)
        np.testing.assert_allclose(found[f"ema.{name}"], ema[name], atol=2e-6)


def test_without_a_gradient_every_weight_decays_by_its_optimizers_rate(state):
    before, theirs = copied(state.parameters), of_muon(state)
    state.update(torch.zeros_like(state.gradient), RATE)
    for name, weight in copied(state.parameters).items():
        rate = RATE * 3 if name in theirs else RATE
        np.testing.assert_allclose(weight, before[name] * (1 - rate * 0.2), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("state", ["muon"], indirect=True)
def test_on_a_cpu_muons_matrices_have_the_bits_of_pytorchs_own(state):
    """Runs on a CPU go on to the bits they had before there were batches of matrices."""
    theirs = {name: state.parameters[name].detach().clone() for name in of_muon(state)}
    alone = torch.optim.Muon(theirs.values(), lr=RATE * 3, momentum=0.9, weight_decay=0.2)
    for t in (1, 2):
        gradient = torch.randn(state.gradient.shape, generator=torch.Generator().manual_seed(t))
        state.update(gradient, RATE)
        gradient *= 0.5 / torch.linalg.vector_norm(gradient)
        parts = gradient.split([p.numel() for p in state.parameters.values()])
        for (name, p), part in zip(state.parameters.items(), parts, strict=True):
            if name in theirs:
                theirs[name].grad = part.view_as(p)
        alone.step()
    for name, weight in theirs.items():
        assert state.parameters[name].equal(weight), name
