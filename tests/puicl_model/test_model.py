import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from puicl_config import ModelConfig
from puicl_model import PUICL
from puicl_model.model import standardize, standardize_masked

N_LABELED, N_UNLABELED, D = 5, 7, 4


@pytest.fixture(scope="module")
def model(random_model):
    """In float64, so that a real influence stands far above rounding."""
    return random_model(seed=0).double()


def tables(b: int = 2, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (b, N_LABELED + N_UNLABELED, D)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def logits_of(model: PUICL, x: torch.Tensor, n_labeled: int = N_LABELED) -> np.ndarray:
    with torch.no_grad():
        return model(x, n_labeled).numpy()


def same(a, b) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_default_model_has_exactly_the_papers_parameters_part_by_part():
    model = PUICL(ModelConfig())
    encoders = count(model.feature_encoder) + count(model.label_encoder)
    assert encoders + model.unlabeled_token.numel() == 640
    assert [count(block) for block in model.blocks] == [198_784] * 6
    assert count(model.decoder) == 33_538
    assert count(model) == 1_226_882
    assert sum(tensor.numel() for tensor in model.state_dict().values()) == 1_226_882


def test_permuting_unlabelled_rows_permutes_the_logits_likewise(model):
    x = tables()
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    permuted = torch.cat([x[:, :N_LABELED], x[:, N_LABELED:][:, order]], dim=1)
    expected = logits_of(model, x)
    assert np.abs(np.diff(expected, axis=1)).min() > 1e-6  # every row has logits of its own
    same(logits_of(model, permuted), expected[:, order.numpy()])


def test_permuting_labelled_rows_changes_no_logit(model):
    x = tables()
    permuted = torch.cat([x[:, [4, 2, 0, 1, 3]], x[:, N_LABELED:]], dim=1)
    same(logits_of(model, permuted), logits_of(model, x))


def test_permuting_columns_changes_no_logit(model):
    x = tables()
    same(logits_of(model, x[:, :, [2, 0, 3, 1]]), logits_of(model, x))


def test_exchanging_a_labelled_and_an_unlabelled_row_changes_the_logits(model):
    x = tables()
    order = [5, 1, 2, 3, 4, 0, *range(6, N_LABELED + N_UNLABELED)]
    changed = np.abs(logits_of(model, x[:, order]) - logits_of(model, x))
    assert changed.max() > 1e-3


def test_shifting_and_scaling_a_column_changes_no_logit(model):
    x = tables()
    scale = torch.tensor([1e-3, 7.0, 1.0, 1e6], dtype=torch.float64)
    shift = torch.tensor([5.0, -30.0, 0.25, 1e6], dtype=torch.float64)
    same(logits_of(model, x * scale + shift), logits_of(model, x))


def test_a_column_pointing_the_other_way_is_another_table(model):
    x = tables()
    flipped = x * torch.tensor([1.0, -1.0, 1.0, 1.0], dtype=torch.float64)
    assert np.abs(logits_of(model, flipped) - logits_of(model, x)).max() > 1e-3


def test_tasks_of_a_batch_do_not_touch_each_other(model):
    x = tables(b=3)
    together = logits_of(model, x)
    for task in range(3):
        same(together[task], logits_of(model, x[task : task + 1])[0])
    other = x.clone()
    other[1] = tables(b=1, seed=9)[0]
    same(logits_of(model, other)[[0, 2]], together[[0, 2]])


def test_every_unlabelled_row_influences_every_other(model):
    x = tables(b=1)
    before = logits_of(model, x)[0]
    for i in range(N_UNLABELED):
        moved = x.clone()
        moved[0, N_LABELED + i] += 1
        change = np.abs(logits_of(model, moved)[0] - before).max(axis=1)
        assert (change > 1e-6).all(), f"row {i} leaves {change} unchanged"


def test_every_labelled_row_influences_every_unlabelled_one(model):
    x = tables(b=1)
    before = logits_of(model, x)[0]
    for i in range(N_LABELED):
        moved = x.clone()
        moved[0, i] += 1
        assert (np.abs(logits_of(model, moved)[0] - before).max(axis=1) > 1e-6).all()


def test_labelled_rows_see_the_unlabelled_ones(random_model):
    model = random_model(layers=2).double()  # of the last block only what is asked is computed
    seen = []
    model.blocks[0].register_forward_hook(lambda module, inputs, output: seen.append(output))
    x = tables(b=1)
    logits_of(model, x)
    moved = x.clone()
    moved[0, -1] += 1  # the scale comes from the labelled rows and stays
    logits_of(model, moved)
    change = (seen[1] - seen[0])[0, :N_LABELED].abs().amax(dim=(1, 2))
    assert (change > 1e-6).all()


def test_new_rows_do_not_influence_each_other(model):
    x, new = tables(), tables(seed=1)[:, :6]
    with torch.no_grad():
        together = model.score_new_rows(x, N_LABELED, new)
        for q in range(6):
            alone = model.score_new_rows(x, N_LABELED, new[:, q : q + 1])
            same(together[:, q : q + 1], alone)
        huge = new.clone()
        huge[:, 3] = 1e6
        other = model.score_new_rows(x, N_LABELED, huge)
    kept = [0, 1, 2, 4, 5]
    same(other[:, kept], together[:, kept])
    assert (other[:, 3] - together[:, 3]).abs().max() > 1e-3


def test_new_rows_leave_the_table_as_it_was_read(model):
    x, new = tables(), tables(seed=1)[:, :6]
    with torch.no_grad():
        cells = list(model.read(x, N_LABELED))
        copies = [cell.clone() for cell in cells]
        for seen in (new, new[:, :1] * 100):
            model.look(cells, x, N_LABELED, seen)
            for cell, copy in zip(cells, copies, strict=True):
                same(cell, copy)


def test_new_rows_see_labelled_and_unlabelled_rows_of_the_table(model):
    x, new = tables(b=1), tables(b=1, seed=1)[:, :3]
    with torch.no_grad():
        before = model.score_new_rows(x, N_LABELED, new)
        for row in range(x.shape[1]):
            moved = x.clone()
            moved[0, row] += 1
            change = (model.score_new_rows(moved, N_LABELED, new) - before).abs()
            assert (change.amax(dim=2) > 1e-6).all(), f"row {row} is not seen"


def test_logits_are_negative_first_and_positive_second():
    """A model taught that rows like the labelled ones are positive puts them in column 1."""
    generator = torch.Generator().manual_seed(0)
    config = ModelConfig(embedding_size=16, layers=1, heads=2, feedforward_size=16)
    model = PUICL(config, generator)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    y = torch.arange(16).remainder(2).expand(8, -1)  # 1 = positive

    def draw() -> torch.Tensor:
        x = torch.randn(8, 24, 2, generator=generator)
        x[:, 8:] += 6 * (1 - y).unsqueeze(-1)  # negatives lie elsewhere
        return x

    for _ in range(30):
        loss = F.cross_entropy(model(draw(), 8).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        logits = model(draw(), 8)
    assert ((logits[..., 1] > logits[..., 0]) == (y == 1)).float().mean() > 0.95


def test_building_a_model_leaves_the_global_random_states_alone():
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    before = (random.getstate(), repr(np.random.get_state()), torch.get_rng_state())  # noqa: NPY002
    PUICL(ModelConfig(layers=1))
    PUICL(ModelConfig(layers=1), torch.Generator().manual_seed(5))
    assert random.getstate() == before[0]
    assert repr(np.random.get_state()) == before[1]  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])


def test_one_seed_gives_one_set_of_weights_whatever_the_global_state():
    def weights(seed: int | None) -> dict[str, torch.Tensor]:
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return PUICL(ModelConfig(layers=2), generator).state_dict()

    torch.manual_seed(1)
    first, default = weights(7), weights(None)
    torch.manual_seed(2)
    again, zero, other = weights(7), weights(0), weights(8)
    for name in first:
        assert torch.equal(first[name], again[name]), name
        assert torch.equal(default[name], zero[name]), name
        constant_at_first = "norm" in name or name.endswith(("qkv.bias", "attention.out.bias"))
        assert torch.equal(first[name], other[name]) == constant_at_first, name


def test_a_token_of_another_kind_is_drawn_from_the_seed_after_the_others():
    plain, more = (PUICL(ModelConfig(layers=1, thinking_rows=2)) for _ in range(2))
    more.group_token = torch.nn.Parameter(torch.full((128,), float("nan")))
    more.reset_parameters(torch.Generator().manual_seed(0))
    assert more.group_token.abs().max() <= 1
    for name, tensor in plain.state_dict().items():
        assert torch.equal(tensor, more.state_dict()[name]), name


def test_blocks_start_with_different_weights():
    blocks = PUICL(ModelConfig(layers=3)).blocks
    matrices = [block.row_attention.qkv.weight for block in blocks]
    matrices += [block.feature_attention.qkv.weight for block in blocks]
    for i, matrix in enumerate(matrices):
        assert all(not torch.equal(matrix, other) for other in matrices[:i])


def test_the_gradient_reaches_every_parameter(random_model):
    model = random_model(layers=3).train().requires_grad_(True)
    y = torch.arange(N_UNLABELED).remainder(2).expand(2, -1)
    logits = model(tables().float(), N_LABELED)
    F.cross_entropy(logits.flatten(0, 1), y.flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        parts = parameter.grad.chunk(3) if "qkv.weight" in name else [parameter.grad]
        for part in parts:  # queries, keys and values each
            assert part.abs().max() > 1e-7, name


def test_the_network_has_no_state_beyond_its_parameters_and_repeats_itself(random_model):
    model = random_model().train()  # nothing in it, such as dropout, depends on the mode
    x = tables().float()
    first = logits_of(model, x)
    assert list(model.buffers()) == []
    np.testing.assert_array_equal(first, logits_of(model, x))
    np.testing.assert_array_equal(first, logits_of(model.eval(), x))


@pytest.mark.parametrize("scale", [0.0, 1e-38, 1e-20, 1.0, 1e20, 1e37])
def test_logits_are_finite_for_columns_of_any_scale(random_model, scale):
    model = random_model()
    x = (tables() * scale).float()
    x[:, :, 1] = scale  # constant
    x[:, :N_LABELED, 2] = 0  # constant among the labelled positives
    new = torch.cat([x[:, -1:] * 0.5, torch.full((2, 1, D), 1e37), torch.zeros(2, 1, D)], dim=1)
    assert np.isfinite(logits_of(model, x)).all()
    with torch.no_grad():
        assert model.score_new_rows(x, N_LABELED, new).isfinite().all()


def test_a_table_of_constants_gives_each_unlabelled_row_the_same_logits(model):
    x = torch.full((1, N_LABELED + N_UNLABELED, D), 1e30, dtype=torch.float64)
    logits = logits_of(model, x)
    same(logits, np.broadcast_to(logits[:, :1], logits.shape))
    same(logits, logits_of(model, torch.zeros_like(x)))


def test_one_labelled_and_one_unlabelled_row_of_one_column_are_enough(model):
    x = torch.tensor([[[1.0], [3.0]]], dtype=torch.float64)
    logits = logits_of(model, x, n_labeled=1)
    assert logits.shape == (1, 1, 2)
    assert np.isfinite(logits).all()
    same(logits, logits_of(model, x * 5 - 2, n_labeled=1))


@pytest.mark.parametrize("d", [1, 3])
def test_a_column_constant_among_the_labelled_is_noticed_at_any_offset(d):
    """Rounding of the mean must not pass for a spread: 1000.1 is not a float32."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 14, d, generator=generator)
    x[:, :7] = 0
    expected = standardize(x, x, 7, ModelConfig())
    shifted = x + 1000.1
    masked = standardize_masked(shifted, torch.arange(14) < 7, ModelConfig())
    for actual in (standardize(shifted, shifted, 7, ModelConfig()), masked):
        np.testing.assert_allclose(actual.numpy(), expected.numpy(), atol=1e-3)
