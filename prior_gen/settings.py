"""`--config` and `--set`: the settings of a config file, or of a folder of shards."""

from typing import Annotated

import typer

from puicl_config import Config, InputError, Split, load_config
from shard_io import MANIFEST, open_shards

Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="Override, section.key=value; repeatable.")
]


def read_settings(config: str, overrides: list[str]) -> tuple[Config, Split]:
    """Of a config file, or of the folder whose manifest.json is given for one.

    Raises `InputError` where there is no such config, or a folder's is to be overridden.
    """
    folder, _, name = config.rpartition("/")
    if name != MANIFEST:
        return load_config(config, overrides), "train"
    if overrides:
        raise InputError(f"{config}: the plan of a folder is taken as it is, without overrides")
    manifest = open_shards(folder or ".").manifest
    return manifest.config, manifest.split
