"""The typed configuration: one frozen section for each of `prior`, `shards`, `model`, `train`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from puicl_config.fields import Distinct, Positive, PositiveFloat, Section
from puicl_config.prior import PriorConfig
from puicl_config.train import TrainConfig


class ShardsConfig(Section):
    """How a plan is stored: not part of the plan's digest, but fixed within one folder."""

    format: Literal["zarr", "webdataset"] = "zarr"
    parts_per_stage: Positive = 8
    x_dtype: Literal["float16", "float32"] = "float16"
    # Compression of zarr. A folder keeps the `zstd_level` and `shuffle` that it began with,
    # whatever a later config says; a different `chunk_cells` is refused.
    zstd_level: int = Field(default=1, ge=1, le=22)
    shuffle: Literal["bytes", "bits"] = "bytes"  # what Blosc regroups in `x` before zstd
    chunk_cells: int = Field(default=2**17, ge=2**10, le=2**28)


class ModelConfig(Section):
    """The dual-axis transformer (paper, Section 3); the defaults have 1,226,882 parameters."""

    embedding_size: Positive = 128
    layers: Positive = 6
    heads: Positive = 8
    feedforward_size: Positive = 256
    # Columns are standardised by mean and deviation of these rows, then clipped to +-feature_clip.
    standardize_by: Literal["labeled", "all"] = "labeled"
    feature_clip: PositiveFloat = 100.0

    # Beyond the paper: each is off by default and can be switched on alone.
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    feature_heads: Positive | None = None  # heads of the attention within rows; None: `heads`
    row_heads: Positive | None = None  # heads of the attention within columns; None: `heads`
    thinking_rows: int = Field(default=0, ge=0)  # learnt rows in front of the table's
    # A column is embedded together with those that many places to its right; (0,): by itself.
    feature_group: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Distinct] = (0,)
    # A token for negatives, which train.reveal_negatives and train.reveal=both need.
    reveals_negatives: bool = False
    scalable_softmax: bool = False  # in the attention within columns

    @model_validator(mode="after")
    def _heads_divide_embedding(self):
        for name in ("heads", "feature_heads", "row_heads"):
            heads = getattr(self, name)
            if heads and self.embedding_size % heads:
                raise ValueError(
                    f"embedding_size {self.embedding_size} is not a multiple of {name} {heads}"
                )
        return self


class Config(Section):
    """One experiment. By default, its run is written to `runs/<name>`."""

    name: str = Field(default="paper", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    prior: PriorConfig = PriorConfig()
    shards: ShardsConfig = ShardsConfig()
    model: ModelConfig = ModelConfig()
    train: TrainConfig = TrainConfig()

    @model_validator(mode="before")
    @classmethod
    def _showing_both_classes_brings_the_token(cls, raw):
        """Switch on the token for negatives with train.reveal=both: one override suffices."""
        train = raw.get("train") if isinstance(raw, dict) else None
        if isinstance(train, dict) and train.get("reveal") == "both":
            model = raw.get("model", {})
            if isinstance(model, dict):
                return {**raw, "model": {**model, "reveals_negatives": True}}
        return raw

    @model_validator(mode="after")
    def _revealed_negatives_have_a_token(self):
        shows = self.train.reveal == "both" or self.train.reveal_negatives.share
        if shows and not self.model.reveals_negatives:
            raise ValueError("train.reveal_negatives needs model.reveals_negatives: true")
        return self

    @model_validator(mode="after")
    def _the_sampler_has_its_stages(self):
        prior, train = self.prior, self.train
        if (train.sampler == "fixed_stage") != (train.fixed_stage is not None):
            raise ValueError(
                "train.sampler=fixed_stage and train.fixed_stage=STAGE belong together: give both "
                "or neither"
            )
        if train.fixed_stage and train.fixed_stage > prior.total_stages:
            raise ValueError(
                f"train.fixed_stage is {train.fixed_stage}, but the plan ends with stage "
                f"{prior.total_stages}"
            )
        if train.sampler in ("tail_only", "interleaved") and not prior.tail_steps:
            raise ValueError(f"train.sampler={train.sampler} needs a tail: prior.tail_steps is 0")
        return self
