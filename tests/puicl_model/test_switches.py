"""Architectures beyond the paper: each switch alone, and all of them together."""

import pytest
import torch

from puicl_config import InputError, ModelConfig, load_config
from puicl_model import PUICL

BASE = {"embedding_size": 16, "layers": 2, "heads": 4, "feedforward_size": 24}
SWITCHES = {
    "rmsnorm": {"norm": "rmsnorm"},
    "heads": {"feature_heads": 2, "row_heads": 1},
    "thinking rows": {"thinking_rows": 5},
    "feature group": {"feature_group": (0, 1, 3)},
    "reveals": {"reveals_negatives": True},
    "scalable softmax": {"scalable_softmax": True},
}
SWITCHES["all"] = {
    key: value for switch in list(SWITCHES.values()) for key, value in switch.items()
}


def build(**switches):
    torch.manual_seed(0)
    return PUICL(ModelConfig(**BASE, **switches)).double().eval()


def count(model):
    return sum(p.numel() for p in model.parameters())


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def test_each_switch_adds_just_its_parameters():
    e, base = 16, count(build())
    norms = 2 * 3 * e  # RMSNorm has no bias
    for name, difference in {
        "rmsnorm": -norms,
        "heads": 0,
        "thinking rows": 5 * e,
        "feature group": 2 * e,
        "reveals": e,
        "scalable softmax": 2 * 4,  # a factor a head of the row attention, in each block
    }.items():
        assert count(build(**SWITCHES[name])) == base + difference, name


@pytest.mark.parametrize("name", SWITCHES)
def test_permuting_rows_permutes_the_output_with_every_switch(name):
    model, x = build(**SWITCHES[name]), torch.randn(2, 20, 5).double()
    logits = model(x, 8)
    order = torch.cat([torch.randperm(8), 8 + torch.randperm(12)])
    torch.testing.assert_close(model(x[:, order], 8), logits[:, order[8:] - 8])


@pytest.mark.parametrize("name", SWITCHES)
def test_the_order_of_columns_matters_only_to_feature_groups(name):
    model, x = build(**SWITCHES[name]), torch.randn(2, 20, 5).double()
    difference = (model(x, 8) - model(x[..., [3, 1, 4, 0, 2]], 8)).abs().max()
    if name in ("feature group", "all"):
        assert difference > 1e-4
        # The group is circular: a rotation of all columns changes nothing.
        torch.testing.assert_close(model(x.roll(2, dims=-1), 8), model(x, 8))
    else:
        assert difference < 1e-10


@pytest.mark.parametrize("name", SWITCHES)
def test_new_rows_are_scored_each_on_its_own_with_every_switch(name):
    model, x = build(**SWITCHES[name]), torch.randn(1, 20, 5).double()
    new = torch.randn(1, 6, 5).double()
    together = model.score_new_rows(x, 8, new)
    for row in range(6):
        alone = model.score_new_rows(x, 8, new[:, row : row + 1])
        torch.testing.assert_close(alone[:, 0], together[:, row])


def test_a_feature_is_embedded_with_its_circular_neighbours():
    model = build(feature_group=(0, 1, 3))
    x = torch.randn(1, 3, 5).double()
    weight, bias = model.feature_encoder.weight, model.feature_encoder.bias
    embedded = model.embed(x, 1)
    for column in range(5):
        group = torch.stack([x[0, 2, (column + offset) % 5] for offset in (0, 1, 3)])
        torch.testing.assert_close(embedded[0, 2, column], weight @ group + bias)


def test_rmsnorm_divides_by_the_root_mean_square():
    norm = build(norm="rmsnorm").blocks[0].row_norm
    x = torch.randn(7, 16).double()
    torch.testing.assert_close(norm(x), x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt())


def test_the_scalable_softmax_begins_as_the_plain_one_and_sharpens_as_rows_grow():
    plain, scaled = build(), build(scalable_softmax=True)
    scaled.load_state_dict(plain.state_dict(), strict=False)
    x = torch.randn(1, 450, 3).double()
    torch.testing.assert_close(scaled(x, 150), plain(x, 150), rtol=1e-6, atol=1e-8)
    assert (scaled(x[:, :50], 20) - plain(x[:, :50], 20)).abs().max() > 1e-6
    attention = scaled.blocks[0].row_attention
    attention.softmax_scale.copy_(torch.tensor([0.1, 0.5, 1.0, 2.0]))
    h = torch.randn(2, 30, 1, 16).double()
    q, k, v = attention.qkv(h).view(2, 30, 3, 4, 4).permute(2, 0, 3, 1, 4)
    s = attention.softmax_scale.view(1, 4, 1, 1) * torch.tensor(30.0).double().log()
    weights = (s * q @ k.transpose(-1, -2) / 4**0.5).softmax(-1)
    expected = attention.out((weights @ v).transpose(1, 2).reshape(2, 30, 1, 16))
    attended, bias_left = attention(h, h)
    assert bias_left is None
    torch.testing.assert_close(attended, expected)
    # Features attend to each other as ever: only rows grow from table to table.
    assert scaled.blocks[0].feature_attention.softmax_scale is None


def test_a_revealed_negative_has_its_own_token_and_informs_the_others():
    model, x = build(reveals_negatives=True), torch.randn(2, 20, 5).double()
    revealed = torch.zeros(2, 12, dtype=torch.bool)
    torch.testing.assert_close(model(x, 8, revealed), model(x, 8))
    revealed[:, 3] = True
    embedded = model.embed(x, 8, revealed)
    torch.testing.assert_close(embedded[0, 11, -1], model.negative_token)
    torch.testing.assert_close(embedded[0, 12, -1], model.unlabeled_token)
    changed = (model(x, 8, revealed) - model(x, 8)).abs().amax(dim=(0, 2))
    assert (changed > 1e-6).all()


def test_thinking_rows_are_seen_by_all_and_are_no_rows_of_the_answer():
    model, x = build(thinking_rows=5), torch.randn(2, 20, 5).double()
    logits = model(x, 8)
    assert logits.shape == (2, 12, 2)
    model.thinking_rows.normal_()
    assert ((model(x, 8) - logits).abs().amax(dim=2) > 1e-6).all()


def test_heads_that_do_not_divide_and_reveals_without_a_token_are_refused():
    with pytest.raises(InputError, match="not a multiple of row_heads 3"):
        load_config("paper", ["model.row_heads=3"])
    with pytest.raises(InputError, match=r"needs model\.reveals_negatives: true"):
        load_config("paper", ["train.reveal_negatives.share=0.5"])


def test_weights_begin_as_pytorchs_would():
    model = PUICL(ModelConfig())
    for block in model.blocks:
        for attention in (block.feature_attention, block.row_attention):
            bound = (6 / (128 + 3 * 128)) ** 0.5  # Xavier uniform
            assert bound * 0.99 < attention.qkv.weight.abs().max() <= bound
            assert attention.qkv.bias.abs().max() == attention.out.bias.abs().max() == 0
            assert 128**-0.5 * 0.99 < attention.out.weight.abs().max() <= 128**-0.5
        assert 256**-0.5 * 0.99 < block.feedforward.outer.weight.abs().max() <= 256**-0.5
        assert block.feedforward.outer.bias.abs().max() > 0.05
        assert (block.row_norm.weight == 1).all()
    assert 0.5 < model.unlabeled_token.abs().max() <= 1


def test_the_classifier_averages_over_column_orders_where_they_matter(tmp_path):
    import numpy as np

    from puicl_model import PUICLClassifier, save_model

    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(40, 5)), (np.arange(40) < 15).astype(int)
    for name, orders in (("thinking rows", 1), ("feature group", 16)):
        model = PUICL(ModelConfig(**BASE, **SWITCHES[name]))
        path = tmp_path / f"{orders}.safetensors"
        save_model(path, model.state_dict(), {"model": model.config.model_dump(mode="json")})
        fitted = PUICLClassifier(path, scalings=("standard",)).fit(x, s)
        assert len(fitted.column_orders_) == orders
        singles = [
            PUICLClassifier(path, n_estimators=1, scalings=("standard",))
            .fit(x[:, order], s)
            .estimator_log_odds_[0]
            for order in fitted.column_orders_
        ]
        mean = np.mean(singles, axis=0)
        np.testing.assert_allclose(fitted.unlabeled_proba_, 1 / (1 + np.exp(-mean)), atol=1e-6)
        again = PUICLClassifier(path, scalings=("standard",)).fit(x, s)
        np.testing.assert_array_equal(fitted.unlabeled_proba_, again.unlabeled_proba_)
        other = PUICLClassifier(path, scalings=("standard",), random_state=1).fit(x, s)
        drawn = [np.stack(each.column_orders_[1:] or [[]]) for each in (fitted, other)]
        assert np.array_equal(*drawn) == (orders == 1)
        np.testing.assert_array_equal(
            fitted.predict_proba(x[20:25])[:, 1], fitted.unlabeled_proba_[5:10]
        )
    with pytest.raises(ValueError, match="n_estimators must be a whole number from 1"):
        PUICLClassifier(path, n_estimators=0).fit(x, s)
