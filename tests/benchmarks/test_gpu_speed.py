"""`benchmarks/gpu_speed.py` measures what it was asked for, or says why it does not."""

import pytest
import torch


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--ways", "eagre"), "invalid choice: 'eagre'"),
        (("--microbatches", 0), "--microbatches must be 1 or more"),
    ],
)
def test_another_way_or_none_to_measure_is_refused(arguments, said, refused):
    assert said in refused("gpu_speed", *arguments)


def test_without_a_gpu_its_speed_is_not_measured(refused, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert refused("gpu_speed") == "error: --device is cuda, but torch sees no GPU here; give cpu\n"
