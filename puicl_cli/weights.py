"""`puicl weights`: list shipped weights, verify their recorded origin, export those of a run."""

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from puicl_config import Config, InputError, counted, visible

weights = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Shipped weights: list, verify, export.",
)

_Model = Annotated[str, typer.Argument(help="A shipped name, or a model.safetensors.")]


@weights.command("list")
def list_weights() -> None:
    """List the weights that come with the package, with their paths."""
    from puicl_model import find_weights, load_model, shipped_weights

    for name in shipped_weights():
        path = find_weights(name)
        _, card = load_model(path)
        print(f"{name}: {card['steps']} steps of {card['name']}, {card['weights_digest']}, {path}")


@weights.command()
def verify(
    model: _Model = "default",
    do_replay: Annotated[
        bool, typer.Option("--replay", help="Also repeat the recorded training steps.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Checkpoint or weights that the run began from; default: as recorded."),
    ] = None,
) -> None:
    """Check weights against their card: digest, first shards and, with --replay, first steps.

    Exits with 1 and names the difference if regenerated shards or repeated steps differ. Exits with
    2 if nothing could be compared: files are missing or damaged, the digest of the weights is not
    the card's, or the card contradicts itself.
    """
    from puicl_model import find_weights, load_model

    _, card = load_model(find_weights(model))  # checks the digest
    print(f"digest: {card['weights_digest']}, as the card says")
    with tempfile.TemporaryDirectory() as folder:
        _verify_origin(card, Path(folder), do_replay, checkpoint)


@weights.command()
def export(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path, typer.Option(help="The .safetensors file to write.")],
    shards: Annotated[str, typer.Option(help="The shards it was trained on.")] = "shards",
    start_share: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.99, help="How far to go back towards the weights the run began from."
        ),
    ] = 0.0,
    back_to: Annotated[
        str | None,
        typer.Option(help="An earlier ancestor (weights or a checkpoint) to go back to instead."),
    ] = None,
    bfloat16: Annotated[
        bool, typer.Option("--bfloat16", help="Round to bfloat16: half the size.")
    ] = False,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Accept a run that was stopped before its end.")
    ] = False,
) -> None:
    """Write a run's final weights with a card that `verify` can check."""
    if out.suffix != ".safetensors":
        raise InputError(f"--out {out}: give a file that ends in .safetensors")
    from shard_io import NoShards
    from trainer import export_weights

    try:
        export_weights(
            run,
            shards,
            out,
            start_share=start_share,
            back_to=back_to,
            bfloat16=bfloat16,
            unfinished=unfinished,
        )
    except NoShards as error:
        raise InputError(f"{error}; name those of the run with --shards") from None
    print(f"{out} and {out.with_suffix('.json')} are written")


def _verify_origin(card: dict, folder: Path, do_replay: bool, checkpoint: Path | None) -> None:
    from prior_gen import generate_shards
    from shard_io import ShardError
    from trainer import check_start, differing_parts, gave_bits_up, recorded_stages, replay

    config, stages = recorded_stages(card)
    on_trust = "name, hardware and times"
    if card.get("unfinished"):
        on_trust = (
            f"that it was stopped after {card['steps']} of {card['of_steps']} steps, {on_trust}"
        )
    print(f"card: config, digests and numbers of steps agree ({on_trust} are taken on trust)")
    start = str(checkpoint) if checkpoint else card["recorded"]["init_from"]
    if do_replay:
        check_start(card, start)  # first, since making the shards again takes minutes
    shards = folder / "shards"
    try:
        generate_shards(config, shards, stages)
    except ShardError as error:
        raise InputError(f"the shards cannot be made again: {error}") from None
    if odd := differing_parts(card, shards):
        reason = _why_shards_differ(config, card)
        print(visible(f"shards: {odd[0]} comes out different here: {reason}"))
        sys.exit(1)
    parts = counted(len(card["recorded"]["parts"]), "part")
    print(f"shards: {parts} of the first steps, made again to the same content")
    if not do_replay:
        return
    if difference := replay(card, shards, folder / "run", start):
        print(visible(f"replay: {difference}"))
        sys.exit(1)
    same = "the same bits"
    if gave_bits_up(config):
        same = "the same losses up to rounding: the run gave up exact bits (train.deterministic)"
    print(f"replay: {counted(len(card['recorded']['ledger']), 'step')}, {same}")


def _why_shards_differ(config: Config, card: dict) -> str:
    """The likeliest reason why regenerated shards differ.

    The card records the machine of the training run, which usually made the shards, too.
    """
    import torch

    from prior_gen import software

    if config.prior.portable:
        return "made by other software, or damaged"
    then = card["environments"][0].get("cpu_capability")
    here = torch.backends.cpu.get_cpu_capability()
    if then not in (None, here):
        return (
            f"the run's processor has {then}, this one {here}, and without "
            "prior.arithmetic=portable the last bits of a plan depend on that; try a processor "
            "like the run's"
        )
    return (
        "made by other software, or damaged, or by other kernels: numpy multiplies with "
        f"{software()['blas']} here, and without prior.arithmetic=portable the last bits of a plan "
        "depend on these kernels (OPENBLAS_CORETYPE chooses them)"
    )
