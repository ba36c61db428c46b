"""Methods by name: each scores the unlabelled rows of a task from P and U alone."""

from pu_bench.methods.base import Method, Prediction
from pu_bench.methods.in_context import PUICLMethod
from pu_bench.methods.simple import AllPositive, Logistic

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (PUICLMethod, Logistic, AllPositive)
}

__all__ = ["METHODS", "Method", "Prediction"]
