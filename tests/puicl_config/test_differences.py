"""What two configs differ in, key by key."""

from puicl_config import Config, PriorConfig, differences, first_of, plan_of


def prior(**extensions):
    return plan_of(PriorConfig(extensions=extensions))["prior"]


def test_nested_keys_are_named_one_by_one_and_equal_ones_not_at_all():
    one = prior(share=0.5, discrete=0.3)
    two = prior(share=0.5, discrete=0.3, warped=0.2)
    assert differences(one, one, PriorConfig) == {}
    assert differences(one, two, PriorConfig) == {"extensions.warped": (0.0, 0.2)}


def test_a_key_that_is_left_out_has_its_default():
    on = prior(share=0.5, graph=0.3, graph_noise=(0.03, 1.0), graph_hidden=(2, 9))
    off = plan_of(PriorConfig(arithmetic="portable"))["prior"]
    assert differences(off, on, PriorConfig) == {
        "arithmetic": ("portable", "libraries"),
        "extensions.share": (0.0, 0.5),
        "extensions.graph": (0.0, 0.3),
        "extensions.graph_hidden": ([2, 16], [2, 9]),
    }


def test_what_has_one_digest_is_no_difference_and_what_has_another_is():
    lists, numbers = {"n_features": [5, 20]}, {"sigma_init": 1.0}
    assert differences(lists, {"n_features": (5, 20)}, PriorConfig) == {}
    assert differences(numbers, {"sigma_init": 1}, PriorConfig) == {"sigma_init": (1.0, 1)}


def test_sections_of_sections_are_looked_into():
    configs = (
        Config(train={"reveal_negatives": {"share": s}}, model={"reveals_negatives": True})
        for s in (0.1, 0.2)
    )
    one, two = (config.model_dump(mode="json") for config in configs)
    assert differences(one, two, Config) == {"train.reveal_negatives.share": (0.1, 0.2)}


def test_of_many_differences_the_first_are_told_and_how_many_more_there_are():
    phrases = [f"{number} differs" for number in range(10)]
    assert first_of(phrases[:8]) == "; ".join(phrases[:8])
    assert first_of(phrases) == "; ".join([*phrases[:8], "and 2 more"])
