"""Commands that start as copies of one process which has imported what they need.

Importing PyTorch takes longer than most runs of the tests, and so does importing the generator. A
copy differs from a process of its own in nothing else that a command can see: its folder,
environment, streams and exit are its own.
"""

import contextlib
import faulthandler
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterable
from pathlib import Path

from unsynced import leave_files_unsynced

ROOT = Path(__file__).resolve().parents[2]


class ForkServer:
    """Runs scripts, and code after `-c`, in copies of a process that imports for all of them."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def run(
        self,
        arguments: list[str],
        imports: Iterable[str],
        processes: int = 1,
        cwd: Path | None = None,
        timeout: int = 900,
    ) -> subprocess.CompletedProcess:
        """What `subprocess.run` gives for these arguments of Python.

        Modules of `imports` that no command before has had imported are, before the copy is made.

        With several `processes`, what it would give for a torchrun that starts them: each finds in
        its environment which of them it is and where they meet. If one fails, the others end.
        """
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            order = {
                "arguments": arguments,
                "imports": list(imports),
                "cwd": str(cwd or Path.cwd()),
                "environments": _environments(processes),
                "streams": [os.devnull, str(out), str(err)],
                "timeout": timeout,
            }
            print(json.dumps(order), file=self._process.stdin, flush=True)
            code = json.loads(self._process.stdout.readline())
            return subprocess.CompletedProcess(
                arguments, code, out.read_text("utf-8"), err.read_text("utf-8")
            )

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _environments(processes: int) -> list[dict[str, str]]:
    """Of each process its variables."""
    common = {**os.environ, "PYTHONPATH": str(ROOT)}
    if processes == 1:
        return [common]
    with socket.socket() as free:
        free.bind(("localhost", 0))
        common |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free.getsockname()[1])}
    common |= {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)}
    return [common | {"RANK": str(n), "LOCAL_RANK": str(n)} for n in range(processes)]


def serve() -> None:
    """Fork for every line of standard input, and say with what the copies ended."""
    answers = os.fdopen(os.dup(1), "w")  # not inherited by what a copy starts
    orders = os.fdopen(os.dup(0))
    leave_files_unsynced()
    for line in orders:
        order = json.loads(line)
        for module in order["imports"]:
            __import__(module)
        children = set()
        for environment in order["environments"]:
            child = os.fork()
            if not child:
                become(order, environment)
                return
            children.add(child)
        print(ended(children), file=answers, flush=True)


def ended(children: set[int]) -> int:
    """Once all have, the exit code of the first that failed, or 0."""
    code = 0
    while children:
        child, status = os.waitpid(-1, 0)
        if child not in children:  # what an imported module had started
            continue
        children.remove(child)
        if not code and (code := os.waitstatus_to_exitcode(status)):
            for other in children:
                os.kill(other, signal.SIGTERM)
    return code


def become(order: dict, environment: dict[str, str]) -> None:
    """Be a process that was ordered, up to its end."""
    for number, (path, flags) in enumerate(
        zip(
            order["streams"],
            (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT | os.O_APPEND] * 2),
            strict=True,
        )
    ):
        file = os.open(path, flags)
        os.dup2(file, number)
        os.close(file)
    faulthandler.dump_traceback_later(order["timeout"], exit=True)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(environment)
    if order["arguments"][0] == "-c":
        _, code, *arguments = order["arguments"]
        sys.argv[:] = ["-c", *arguments]
        sys.path[0] = ""
        # As Python has it: of no file, which the workers of a command would import.
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), main.__dict__)
    else:
        sys.argv[:] = order["arguments"]
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    serve()
