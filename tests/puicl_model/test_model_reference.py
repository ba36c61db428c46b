import numpy as np
import pytest
import reference_model
import torch

from puicl_config import ModelConfig
from puicl_model import PUICL
from puicl_model.model import standardize

CASES = [  # tasks, rows, labelled, features, sizes of the model
    (1, 2, 1, 1, {"embedding_size": 4, "layers": 1, "heads": 1, "feedforward_size": 4}),
    (3, 11, 5, 4, {"embedding_size": 16, "layers": 1, "heads": 1, "feedforward_size": 24}),
    (2, 13, 9, 3, {"embedding_size": 16, "layers": 3, "heads": 2, "feedforward_size": 8}),
    (4, 8, 2, 6, {"embedding_size": 12, "layers": 2, "heads": 4, "feedforward_size": 40}),
    (1, 30, 12, 2, {"embedding_size": 24, "layers": 2, "heads": 8, "feedforward_size": 16}),
    (2, 9, 8, 5, {"embedding_size": 8, "layers": 4, "heads": 8, "feedforward_size": 16}),
]


def tables(b: int, n: int, d: int, seed: int = 0) -> np.ndarray:
    """[b, n, d] float32, each column with its own offset and scale, a few far outliers."""
    rng = np.random.default_rng(seed)
    x = rng.normal(rng.normal(0, 2, (b, 1, d)), rng.uniform(0.5, 3, (b, 1, d)), (b, n, d))
    x[:, -1, 0] += 40
    return x.astype(np.float32)


def odd_tables() -> np.ndarray:
    """[2, 12, 7]: columns that are degenerate in each way, for 5 labelled rows."""
    x = tables(2, 12, 7, seed=5)
    x[:, :, 0] = 3.7  # constant everywhere
    x[:, :5, 1] = -1.25  # constant among the labelled positives
    x[:, 5:, 2] = 0.5  # constant among the unlabelled rows
    x[:, :5, 3] = [0, 1e-7, 2e-7, 0, 1e-7]  # below a millionth of the spread of all rows
    x[:, 6, 4] = 1e5  # clipped
    x[:, 7, 4] = -1e5
    x[:, :, 5] = x[:, :, 5] > 0  # binary
    x[0, :, 6] = 0  # constant in one of the two tasks
    return x


def both(model: PUICL, x: np.ndarray, n_labeled: int) -> tuple[np.ndarray, np.ndarray]:
    """The model's logits and the reference's."""
    dtype = model.unlabeled_token.dtype
    with torch.no_grad():
        logits = model(torch.from_numpy(x).to(dtype), n_labeled).numpy()
    return logits, reference_model.forward(
        parameters(model), x, n_labeled, model.config.heads, model.config.feature_clip
    )


def parameters(model: PUICL) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize(("b", "n", "n_labeled", "d", "sizes"), CASES)
def test_float32_logits_agree_with_the_literal_reference(random_model, b, n, n_labeled, d, sizes):
    model = random_model(seed=n, **sizes)
    logits, expected = both(model, tables(b, n, d, seed=n), n_labeled)
    assert logits.shape == (b, n - n_labeled, 2)
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("b", "n", "n_labeled", "d", "sizes"), CASES)
def test_float64_logits_agree_with_the_reference_to_the_last_digits(
    random_model, b, n, n_labeled, d, sizes
):
    model = random_model(seed=n, **sizes).double()
    logits, expected = both(model, tables(b, n, d, seed=n), n_labeled)
    np.testing.assert_allclose(logits, expected, rtol=1e-10, atol=1e-10)


def test_the_default_model_as_initialised_agrees_with_the_reference():
    logits, expected = both(PUICL(ModelConfig()).eval(), tables(1, 10, 3), 4)
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)


def test_degenerate_and_clipped_columns_agree_with_the_reference(random_model):
    model = random_model(seed=3)
    logits, expected = both(model, odd_tables(), 5)
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)
    logits, expected = both(model.double(), odd_tables(), 5)
    np.testing.assert_allclose(logits, expected, rtol=1e-10, atol=1e-10)


def test_one_labelled_positive_is_scaled_by_all_rows_as_in_the_reference(random_model):
    logits, expected = both(random_model(seed=4), tables(2, 7, 3, seed=9), 1)
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)


def test_a_smaller_clip_agrees_with_the_reference(random_model):
    model = random_model(seed=6, feature_clip=1.5)
    x = tables(2, 9, 4, seed=2)
    logits, expected = both(model, x, 4)
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)
    unclipped = reference_model.forward(parameters(model), x, 4, model.config.heads)
    assert np.abs(unclipped - expected).max() > 1e-3


@pytest.mark.parametrize("x", [tables(2, 12, 7, seed=1), odd_tables()], ids=["plain", "odd"])
def test_new_rows_are_scored_as_by_the_reference(random_model, x):
    model = random_model(seed=7, layers=3)
    x_new = tables(2, 4, 7, seed=8)
    x_new[:, 0, 1] = 1e4
    expected = reference_model.score_new_rows(parameters(model), x, 5, x_new, model.config.heads)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-10)):
        table, new = (torch.from_numpy(array).to(dtype) for array in (x, x_new))
        with torch.no_grad():
            logits = model.to(dtype).score_new_rows(table, 5, new).numpy()
        assert logits.shape == (2, 4, 2)
        np.testing.assert_allclose(logits, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("x", [tables(2, 12, 7, seed=1), odd_tables()], ids=["plain", "odd"])
def test_standardising_agrees_with_the_reference(x):
    x_new = tables(2, 3, 7, seed=2) * 30
    table, new = torch.from_numpy(x).double(), torch.from_numpy(x_new).double()
    for rows, torch_rows in ((x, table), (x_new, new)):
        expected = [
            reference_model.standardize(r, t, 5)
            for r, t in zip(rows.astype(float), x.astype(float), strict=True)
        ]
        actual = standardize(torch_rows, table, 5, ModelConfig()).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)


def test_standardising_by_the_labelled_positives_has_the_values_computed_by_hand():
    table = torch.tensor(
        [
            # sigma_P = 2; only all rows' spread, sqrt(3); constant; clipped, sigma_P = 1
            [[1.0, 5.0, 8.0, -1.0]],
            [[5.0, 5.0, 8.0, 1.0]],
            [[3.0, 9.0, 8.0, 1000.0]],
            [[7.0, 5.0, 8.0, -1000.0]],
        ]
    ).transpose(0, 1)
    half = 4 / 3**0.5
    expected = [
        [-1.0, 0.0, 0.0, -1.0],
        [1.0, 0.0, 0.0, 1.0],
        [0.0, half, 0.0, 100.0],
        [2.0, 0.0, 0.0, -100.0],
    ]
    actual = standardize(table, table, 2, ModelConfig())
    np.testing.assert_allclose(actual[0].numpy(), expected, rtol=1e-6)


def test_the_fallback_starts_below_a_millionth_of_the_spread_of_all_rows():
    def scaled_last(sigma_labeled: float) -> float:
        table = torch.tensor([-1.0, 1.0, 0.0, 0.0], dtype=torch.float64).reshape(1, 4, 1)
        table[0, :2] *= sigma_labeled
        table[0, 2:, 0] = torch.tensor([1.0, -1.0])
        config = ModelConfig(feature_clip=1e9)
        return standardize(table, table, 2, config)[0, 2, 0].item()

    spread_of_all = 0.5**0.5
    assert scaled_last(1.01e-6 * spread_of_all) == pytest.approx(1 / (1.01e-6 * spread_of_all))
    assert scaled_last(0.99e-6 * spread_of_all) == pytest.approx(1 / spread_of_all)


def test_standardising_by_all_rows_uses_their_mean_and_spread():
    x = tables(2, 12, 4, seed=3).astype(np.float64)
    table = torch.from_numpy(x)
    actual = standardize(table, table, 5, ModelConfig(standardize_by="all")).numpy()
    expected = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-11)
