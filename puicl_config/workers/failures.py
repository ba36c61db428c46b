"""Errors that report failures of workers."""

from puicl_config.errors import InputError


class WorkerTraceback(Exception):
    """The traceback of an exception in a worker process, to be attached as its cause."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def killed_from_outside(who: str) -> InputError:
    """The error for workers killed from outside; `who` is for example "a worker process was"."""
    return InputError(
        f"{who} killed from outside (perhaps the system ran out of memory); what is published is "
        "whole: run the same command again to go on, perhaps with fewer --jobs"
    )
