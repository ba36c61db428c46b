"""Nothing of a step stays on the CPU, and the host waits for no value: what a GPU asks for.

On PyTorch's device "meta", which every machine has: tensors there hold nothing, operations refuse
to mix them with a CPU's, and whoever looks at a value (which would make the host wait for a GPU,
and cannot be recorded) is refused, too.
"""

import pytest
import torch

from puicl_config import load_config
from trainer.gradient import microbatch_gradient
from trainer.graphs import RecordedGradients
from trainer.loader import Batch
from trainer.muon import BatchedMuon
from trainer.state import TrainState

ELSEWHERE = torch.device("meta")
SMALL = ["model.layers=2", "model.embedding_size=32", "model.feedforward_size=48"]
VARIANTS = {
    "as on a GPU": [],
    "float32": ["train.precision=float32", "train.recompute=true"],
    "other norms and softmax": ["model.norm=layernorm", "model.scalable_softmax=true"],
    "the paper's network": [
        "model.norm=layernorm",
        "model.thinking_rows=0",
        "model.feature_group=[0]",
    ],
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS)
def config(request):
    return load_config("gpu_deep_long", [*SMALL, *request.param])


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 100, 5, generator=generator)
    return Batch((1, 0, 0), x, (torch.rand(2, 60, generator=generator) < 0.5).long(), 40)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_gradient_mixes_no_devices_and_looks_at_no_value(config, batch, share):
    state = TrainState(config, ELSEWHERE)
    found = microbatch_gradient(state, batch, config.train, share)
    assert (found.device, len(found)) == (ELSEWHERE, len(state.gradient) + 1)


def test_what_a_graph_records_mixes_no_devices_and_looks_at_no_value(config, batch):
    state = TrainState(config, ELSEWHERE)
    recorded = RecordedGradients(state, config.train)
    for _ in range(2):
        found = recorded(batch)
        assert (found.device, len(found)) == (ELSEWHERE, len(state.gradient) + 1)


def test_an_update_with_muon_mixes_no_devices_and_looks_at_no_value(config):
    state = TrainState(config, ELSEWHERE)
    matrices = [p for name, p in state.parameters.items() if ".qkv.weight" in name]
    # Fused AdamW, which takes the others, knows no "meta".
    state._optimizers = [(BatchedMuon(matrices), 8.0)]
    for _ in range(2):
        norm = state.update(torch.ones_like(state.gradient), 1e-3)
        assert norm.device == ELSEWHERE
    assert all(tensor.device == ELSEWHERE for tensor in state.ema.values())


@pytest.mark.parametrize("new_rows", [1, 200])
def test_new_rows_are_scored_where_the_network_is(config, batch, new_rows):
    network = TrainState(config, ELSEWHERE).model
    network.precision = config.train.precision
    x, new = batch.x.to(ELSEWHERE), torch.empty(2, new_rows, 5, device=ELSEWHERE)
    with torch.inference_mode():
        read = list(network.read(x, batch.n_labeled))
        assert network.answer(read[-1], batch.n_labeled).shape == (2, 60, 2)
        assert network.look(read, x, batch.n_labeled, new).shape == (2, new_rows, 2)
