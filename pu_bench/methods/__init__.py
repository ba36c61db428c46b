"""Methods by name: each scores the unlabelled rows of a task from P and U alone."""

from pu_bench.methods.base import Method, Prediction
from pu_bench.methods.crossfit import ExtraTrees, GradientBoosting, Logistic
from pu_bench.methods.density_ratio import ULSIF
from pu_bench.methods.empu import EMPU
from pu_bench.methods.foundation import TabICL, TabPFN
from pu_bench.methods.in_context import (
    PUICLMethod,
    PUICLPaper,
    PUICLSinglePass,
    PUICLWithTrees,
)
from pu_bench.methods.oracle import Oracle
from pu_bench.methods.outliers import IsolationForest, OneClassSVM
from pu_bench.methods.packaged import BaggingPU, ElkanNoto
from pu_bench.methods.pu_risk import NNPU, PUSB, UPU, NNPUTruePrior, PUSBTruePrior, UPUTruePrior
from pu_bench.methods.simple import AllPositive, RandomScores
from pu_bench.methods.ted import TED
from pu_bench.methods.vpu import VPU

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        PUICLMethod,
        PUICLSinglePass,
        PUICLWithTrees,
        PUICLPaper,
        EMPU,
        VPU,
        TED,
        ULSIF,
        ElkanNoto,
        BaggingPU,
        NNPU,
        UPU,
        PUSB,
        ExtraTrees,
        GradientBoosting,
        Logistic,
        TabPFN,
        TabICL,
        OneClassSVM,
        IsolationForest,
        AllPositive,
        RandomScores,
        NNPUTruePrior,
        UPUTruePrior,
        PUSBTruePrior,
        Oracle,
    )
}

__all__ = ["METHODS", "Method", "Prediction"]
