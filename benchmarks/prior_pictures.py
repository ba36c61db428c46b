"""The pictures of docs/prior.md: a thin slice of the paper's plan, and its preview.

The plan is that of configs/paper.yaml, so its digest is that of the real shards. Only the parts are
smaller (60 a stage, a matter of storage that is not in the plan). One part of every third stage and
of four stages of the tail is made: some 23,000 tasks.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from how_many import count
from where_to import output_folder

from prior_gen.canary import canary_digest, software
from prior_gen.generator import write_parts
from prior_gen.preview import write_preview
from puicl_config import Config, exit_on_input_error, load_config
from shard_io import Manifest, PartId, claim_folder, open_shards

STAGES = (*range(1, 101, 3), 101, 112, 123, 134)


def make_shards(folder: Path, jobs: int) -> None:
    """The first sixtieth of each of `STAGES` of the paper's plan."""
    config = load_config("paper", ["shards.parts_per_stage=60"])
    manifest = Manifest(
        config=Config(prior=config.prior, shards=config.shards),
        split="train",
        canary=canary_digest(config.prior),
        software=software(),
    )
    manifest, parts = claim_folder(folder, manifest), [PartId(s, 0) for s in STAGES]
    there = set(open_shards(folder).published_parts())
    write_parts(manifest, folder, [part for part in parts if part not in there], jobs)


@exit_on_input_error
def main() -> None:
    """Make the shards that --shards lacks, then the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images/prior"))
    parser.add_argument("--shards", type=Path, help="folder to keep the slice in")
    parser.add_argument("--page", type=Path, help="folder to keep the whole preview in")
    parser.add_argument("--tasks", type=count, default=400, help="tasks scored for difficulty")
    parser.add_argument("--jobs", type=count, default=1)
    arguments = parser.parse_args()
    output_folder(arguments.out)
    with tempfile.TemporaryDirectory() as temporary:
        shards = arguments.shards or Path(temporary) / "shards"
        make_shards(shards, arguments.jobs)
        page = arguments.page or Path(temporary) / "page"
        write_preview(shards, page, tasks=arguments.tasks)
        for picture in sorted(page.glob("*.png")):
            shutil.copyfile(picture, arguments.out / picture.name)
            print(arguments.out / picture.name, f"{picture.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
