"""Small models with no parameter left at its initial value, and threads that are counted."""

import pytest
import torch
from little_table import S, table

from puicl_config import ModelConfig
from puicl_model import PUICL, PUICLClassifier, save_model, threads


@pytest.fixture(scope="session")
def random_model():
    def build(seed: int = 0, **sizes) -> PUICL:
        """Every parameter is random, norms and biases too, so that none hides at 0 or 1."""
        sizes = {"embedding_size": 16, "layers": 2, "heads": 4, "feedforward_size": 24, **sizes}
        model = PUICL(ModelConfig(**sizes))
        generator = torch.Generator().manual_seed(1000 + seed)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                if parameter.ndim == 2:
                    parameter.copy_(noise * parameter.shape[1] ** -0.5)
                elif "norm.weight" in name:
                    parameter.copy_(1 + 0.3 * noise)
                else:
                    parameter.copy_(0.5 * noise)
        return model.eval()

    return build


@pytest.fixture(scope="module")
def weights(random_model, tmp_path_factory):
    model = random_model(seed=11)
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    save_model(path, model.state_dict(), {"model": model.config.model_dump()})
    return path


@pytest.fixture
def classifier(weights):
    return PUICLClassifier(weights)


@pytest.fixture(scope="module")
def fitted(weights):
    return PUICLClassifier(weights).fit(table(), S)


@pytest.fixture(params=["of PyTorch", "of our own"])
def parts_of_work(request, monkeypatch):
    """Everything is worth a thread: into how many parts each call that was shared out fell."""
    parts = []
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)
    team, own = threads._team(), threads._in_own_threads
    if request.param == "of PyTorch" and team is None:
        pytest.skip("PyTorch's threads cannot be asked here")

    def with_team(count, function, arguments):
        parts.append(arguments[-1])
        team(count, function, arguments)

    def with_own(function, numbers, bounds, scratch):
        parts.append(len(scratch))
        own(function, numbers, bounds, scratch)

    of_pytorch = request.param == "of PyTorch"
    monkeypatch.setattr(threads, "_team", lambda: with_team if of_pytorch else None)
    monkeypatch.setattr(threads, "_in_own_threads", with_own)
    return parts
