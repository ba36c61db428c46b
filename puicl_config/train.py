"""The section `train`: optimizer, schedule, sampler, and when to stop, log and save."""

from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from puicl_config.fields import LATER, Fraction, Later, Positive, PositiveFloat, Section


class PhaseConfig(Section):
    """Learning rate of one phase: warm-up to `peak`, then polynomial decay to `floor`."""

    peak: PositiveFloat
    floor: float = Field(ge=0)
    warmup_steps: int = Field(ge=0)

    @model_validator(mode="after")
    def _floor_below_peak(self):
        if self.floor > self.peak:
            raise ValueError(f"floor {self.floor} lies above peak {self.peak}")
        return self


class RevealConfig(Section):
    """Share of the true negatives that are shown with their label.

    It falls linearly from `share` at the first step to zero at `until` times the number of steps.
    """

    share: float = Field(default=0.0, ge=0, lt=1)
    until: float = Field(default=0.5, gt=0, le=1)


class SelfDistillationConfig(Section):
    """Soft targets from the moving average of the weights, applied to several views of each task.

    An unlabelled row's target is (1 - weight) times its class plus `weight` times its probability
    according to the averaged weights. This probability comes from `passes` forward passes, as in
    `PUICLClassifier`.
    """

    weight: float = Field(default=0.0, ge=0, lt=1)
    passes: Positive = 4


Sampler = Literal["curriculum", "shuffled", "reverse", "fixed_stage", "tail_only", "interleaved"]
SAMPLERS: tuple[Sampler, ...] = get_args(Sampler)


class TrainConfig(Section):
    """The optimizer's two phases, precision, and when to stop, log and save."""

    seed: int = Field(default=0, ge=0, lt=2**63)
    # `sampler` is the order of the plan's steps (`trainer/sampler.py`); `where` selects
    # microbatches by an expression over their tags such as "causal and n_features <= 10".
    sampler: Sampler = "curriculum"
    fixed_stage: Positive | None = None  # the stage of sampler=fixed_stage
    where: str | None = None
    phase1: PhaseConfig = PhaseConfig(peak=1.6e-4, floor=1.6e-5, warmup_steps=4000)
    phase2: PhaseConfig = PhaseConfig(peak=4e-5, floor=4e-6, warmup_steps=2000)
    decay_exponent: PositiveFloat = 1.5
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.95, ge=0, lt=1)
    adam_epsilon: PositiveFloat = 1e-8
    weight_decay: float = Field(default=1e-4, ge=0)
    clip_norm: PositiveFloat = 1.0
    ema_decay: float = Field(default=0.95, ge=0, lt=1)
    optimizer: Literal["adamw", "muon"] = "adamw"
    muon_lr_ratio: PositiveFloat = 8.0  # Muon's learning rate divided by AdamW's
    muon_momentum: float = Field(default=0.95, ge=0, lt=1)
    reveal_negatives: RevealConfig = RevealConfig()
    # "both" trains the supervised counterpart: in every step, `reveal_share` of the unlabelled rows
    # of both classes are shown with their label, and `reveal_negatives` is not used.
    reveal: Literal["negatives", "both"] = "negatives"
    reveal_share: Fraction = 0.5
    self_distillation: Annotated[SelfDistillationConfig, LATER] = SelfDistillationConfig()
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    threads_per_process: int = Field(default=1, ge=1, le=4096)
    tasks_per_forward: Positive | None = None  # None: all on a GPU, few at a time on a CPU
    # Numbers of labelled and unlabelled rows are reduced to multiples of this, so that compilers
    # see fewer shapes.
    round_rows: Annotated[Positive, LATER] = 1
    # deterministic: use deterministic algorithms on a GPU, so that the guarantees about bits hold
    # there, too; those on a CPU always are. compile: apply torch.compile to the blocks.
    # cuda_graphs: record a graph for each shape, for which numbers of rows are reduced to some
    # twenty values (`trainer/graphs.py`).
    deterministic: bool = True
    compile: bool = False
    cuda_graphs: Annotated[bool, LATER] = False

    # The start: a checkpoint of a run under another config, weights (NAME.safetensors), or the name
    # of shipped weights. Their digest, not their path, is part of the run's digest.
    init_from: str | None = None

    # Not part of the run's digest: when to stop, log and save, which never changes a bit.
    max_steps: int | None = Field(default=None, ge=0)
    max_seconds: PositiveFloat | None = None
    log_every: Positive = 50
    digest_every: Positive = 100
    checkpoint_every: Positive = 500
    keep_checkpoints: Positive = 3
    loader_threads: int = Field(default=1, ge=0)
    # Read in processes instead of threads, so that the thread that feeds a GPU need not wait.
    loader_processes: Annotated[int, Field(ge=0), LATER] = 0
    # Save memory by computing activations again for the gradient, with the same bits.
    recompute: bool = False
    # Start while the shards are still being written; give up `follow_timeout` seconds after the
    # last new part.
    follow: bool = False
    follow_timeout: PositiveFloat = 1800.0
    # A folder made by `prior-gen --split heldout`, on which the EMA weights are evaluated.
    heldout: str | None = None
    heldout_every: Positive = 500
    heldout_microbatches: Positive = 32

    @model_validator(mode="after")
    def _graphs_compute_the_plain_loss(self):
        """Refuse early: a later refusal would leave a run folder that requires the same config."""
        shows = self.reveal == "both" or self.reveal_negatives.share
        if self.cuda_graphs and (shows or self.self_distillation.weight):
            raise ValueError(
                "cuda_graphs computes the plain loss alone: without reveal, reveal_negatives and "
                "self_distillation"
            )
        return self

    def _is_used(self, key: str, mark: Later) -> bool:
        if key == "self_distillation":
            return bool(self.self_distillation.weight)
        return super()._is_used(key, mark)


# Keys of `train` that are not part of the run's digest, since they never change a bit of the
# weights. `init_from` is a path; the digest of what it leads to is included instead (`run_digest`).
RUN_DIGEST_EXCLUDES = frozenset(
    {
        "max_steps",
        "max_seconds",
        "log_every",
        "digest_every",
        "checkpoint_every",
        "keep_checkpoints",
        "loader_threads",
        "loader_processes",
        "recompute",
        "follow",
        "follow_timeout",
        "heldout",
        "heldout_every",
        "heldout_microbatches",
        "init_from",
    }
)
