"""Common ground of all packages: the typed configuration, its digests, and tools for commands."""

from puicl_config.amounts import counted, duration, volume
from puicl_config.atomic import write_atomically
from puicl_config.differences import differences, first_of
from puicl_config.digests import (
    canonical_json,
    plan_digest,
    plan_of,
    run_digest,
    sha256_of,
)
from puicl_config.errors import InputError, exit_on_input_error, fixable_reason, visible
from puicl_config.extensions import (
    EXTENSIONS,
    LABEL_SOURCES,
    RANGES,
    RULE_KINDS,
    SMOOTH_RULES,
    ExtensionsConfig,
)
from puicl_config.home import from_home, nearest_there
from puicl_config.idle import idle_in_prior, idle_in_run
from puicl_config.loading import config_yaml, find_config, load_config, parse_config
from puicl_config.prior import ACTIVATIONS, PriorConfig, Split
from puicl_config.progress import ProgressReport
from puicl_config.schema import Config, ModelConfig, ShardsConfig
from puicl_config.surroundings import cpu_facts, cpu_name, git_commit
from puicl_config.train import (
    RUN_DIGEST_EXCLUDES,
    SAMPLERS,
    PhaseConfig,
    RevealConfig,
    TrainConfig,
)
from puicl_config.version import version_printer

__all__ = [
    "ACTIVATIONS",
    "EXTENSIONS",
    "LABEL_SOURCES",
    "RANGES",
    "RULE_KINDS",
    "RUN_DIGEST_EXCLUDES",
    "SAMPLERS",
    "SMOOTH_RULES",
    "Config",
    "ExtensionsConfig",
    "InputError",
    "ModelConfig",
    "PhaseConfig",
    "PriorConfig",
    "ProgressReport",
    "RevealConfig",
    "ShardsConfig",
    "Split",
    "TrainConfig",
    "canonical_json",
    "config_yaml",
    "counted",
    "cpu_facts",
    "cpu_name",
    "differences",
    "duration",
    "exit_on_input_error",
    "find_config",
    "first_of",
    "fixable_reason",
    "from_home",
    "git_commit",
    "idle_in_prior",
    "idle_in_run",
    "load_config",
    "nearest_there",
    "parse_config",
    "plan_digest",
    "plan_of",
    "run_digest",
    "sha256_of",
    "version_printer",
    "visible",
    "volume",
    "write_atomically",
]
