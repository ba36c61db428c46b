"""How a run tells that its workers failed."""

from puicl_config.errors import InputError


class WorkerTraceback(Exception):
    """Where in a worker process an exception was raised; its cause, for whoever reads a report."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def killed_from_outside(who: str) -> InputError:
    """What to say when the system, or somebody, ended workers; `who`: "a worker process was"."""
    return InputError(
        f"{who} killed from outside (perhaps the system ran out of memory); what is published is "
        "whole: run the same command again to go on, perhaps with fewer --jobs"
    )
