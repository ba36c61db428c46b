"""The options `--config` and `--set`: settings from a config file or from a folder of shards."""

from typing import Annotated

import typer

from puicl_config import Config, InputError, Split, load_config
from shard_io import MANIFEST, open_shards

Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Override, section.key=value; repeatable.")
]


def read_settings(config: str, overrides: list[str]) -> tuple[Config, Split]:
    """Settings and split of a config file, or of the folder whose manifest.json `config` names.

    The split of a config file is "train". Raises `InputError` if there is no such config or it is
    invalid, or if there are overrides for a folder's manifest.
    """
    folder, _, name = config.rpartition("/")
    if name != MANIFEST:
        return load_config(config, overrides), "train"
    if overrides:
        raise InputError(f"{config}: the plan of a folder is taken as it is, without overrides")
    manifest = open_shards(folder or ".").manifest
    return manifest.config, manifest.split
