"""Small models with no parameter left at its initial value."""

import pytest
import torch

from puicl_config import ModelConfig
from puicl_model import PUICL


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
