"""The Triton kernels in Triton's interpreter, in float16: it has no products of bfloat16."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton", reason="Triton is not installed: it comes with PyTorch for CUDA")

_ATTENTION = """
import torch
from puicl_model.cell_attention import attend_cells

torch.manual_seed(0)
for b, r, c in ((2, 37, 5), (1, 16, 17), (1, 7, 64)):
    qkv = (torch.randn(b, r, c, 3, 4, 32) / 2).half().requires_grad_()
    exact = qkv.detach().float().requires_grad_()
    q, k, v = (part.permute(0, 1, 3, 2, 4) for part in exact.unbind(3))
    expected = ((q @ k.mT).softmax(-1) @ v).permute(0, 1, 3, 2, 4).flatten(-2)
    slope = torch.randn_like(expected)
    found = attend_cells(qkv)
    found.backward(slope.half())
    expected.backward(slope)
    torch.testing.assert_close(found.float(), expected, atol=3e-3, rtol=0)
    torch.testing.assert_close(qkv.grad.float(), exact.grad, atol=2e-2, rtol=0)
"""

_PASSES = """
import torch
from torch import nn
import torch.nn.functional as F
from puicl_model import gpu_passes

torch.manual_seed(0)
for shape in ((2, 37, 5, 128), (1, 3, 128), (4, 65, 64)):
    e = shape[-1]
    norm = nn.RMSNorm(e, eps=1e-5)
    norm.weight.data.uniform_(0.5, 1.5)
    ways = {
        "norm": (
            lambda h, u, b: gpu_passes.add_and_norm(h, u, b, norm),
            lambda h, u, b: norm(h + u + b),
        ),
        "gelu": (lambda h, u, b: gpu_passes.gelu(h, b), lambda h, u, b: F.gelu(h + b)),
    }
    for name, (ours, plain) in ways.items():
        inputs = [torch.randn(shape), torch.randn(shape), torch.randn(e)]
        slope, results = torch.randn(shape), []
        for way in (ours, plain):
            some = [part.clone().requires_grad_() for part in inputs]
            norm.weight.grad = None
            out = way(*some)
            out.backward(slope)
            results.append([out, *(part.grad for part in some), norm.weight.grad])
        for found, expected in zip(*results, strict=True):
            if expected is not None:
                torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
"""


@pytest.mark.parametrize("script", [_ATTENTION, _PASSES], ids=["attention", "passes"])
def test_kernels_have_the_values_and_gradients_of_pytorch(script):
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()[-2000:]
