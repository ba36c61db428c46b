"""Shards behind a URL: s3:// to write and read, http:// and https:// to read, with a cache.

Credentials, region and endpoint come only from the environment (AWS_ACCESS_KEY_ID,
AWS_ENDPOINT_URL and so on); a URL that contains any is refused.
"""

import contextlib
import hashlib
import os
import shlex
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from puicl_config import InputError
from shard_io.checked import CheckedFiles, Seal, seal_of
from shard_io.errors import ShardError, repairing, told_as_shard_error

_A_DAY = 86_400.0
_READ_ONLY = ("http", "https")
_KINDS = ("s3", *_READ_ONLY)


class RemoteStore:
    """A prefix of an object store, or a folder behind a web server.

    Objects are never renamed: a part's files are uploaded first and its entry last, and an object
    appears only when its upload is complete. Parts that are read are kept under `cache_folder`.
    """

    look_every = 5.0

    def __init__(self, url: str):
        parts = urlsplit(url)
        if "@" in parts.netloc or parts.query:  # checked first, as other messages show the URL
            raise InputError(
                f"{parts.scheme}://{parts.hostname}: credentials belong in the environment, not "
                "in the URL"
            )
        if parts.scheme not in _KINDS:
            raise InputError(f"{url}: shards are read from {', '.join(_KINDS)} or a folder")
        self._url, self._kind = url.rstrip("/"), parts.scheme

    def __str__(self) -> str:
        return self._url

    def __truediv__(self, path: str) -> str:
        """The URL of a file, for messages."""
        return f"{self._url}/{path}"

    def prepare(self) -> None:
        """Do nothing: an object store has no folders."""

    def check_writable(self) -> None:
        """See `Store`."""
        if self._kind in _READ_ONLY:
            raise InputError(f"{self} can only be read; write to a folder or to s3://")

    def names(self) -> list[str]:
        """Names under the prefix; raises `InputError` if the store is read-only."""
        self.check_writable()
        return sorted({path.split("/")[0] for path in self.listing() or ()})

    def read(self, path: str) -> bytes:
        """See `Store`."""
        with self._told(self / path):
            return self._files().cat_file(self._path(path))

    def present(self, paths: Sequence[str], since: float | None = None) -> set[str]:
        """See `Store`; `since` is ignored.

        Folders of an object store are listed, and a web server is asked for each path. An object
        store is also asked for each path without a folder, since a listing would be of everything.
        """
        folders = {path.rpartition("/")[0] for path in paths} - {""}
        if self._kind in _READ_ONLY:
            folders = set()
        asked = [path for path in paths if path.rpartition("/")[0] not in folders]
        with ThreadPoolExecutor(16) as pool:
            answers = pool.map(self._is_there, asked)
            found = {path for path, there in zip(asked, answers, strict=True) if there}
        start = len(self._path(""))
        with self._told(self._url), contextlib.suppress(FileNotFoundError):
            for folder in folders:
                found.update(path[start:] for path in self._files().find(self._path(folder)))
        return found & set(paths)

    def create(self, path: str, content: bytes) -> bool:
        """See `Store`."""
        if self._is_there(path):
            return False
        try:
            self._files().pipe_file(self._path(path), content, mode="create")
        except Exception as error:
            if self._is_there(path):  # another writer was first
                return False
            raise ShardError(f"{self / path} cannot be written: {_first_line(error)}") from error
        return True

    def replace(self, path: str, content: bytes) -> None:
        """See `Store`."""
        with self._written(path):
            self._files().pipe_file(self._path(path), content)

    def staging(self) -> AbstractContextManager[Path]:
        """A private folder among this machine's temporary files."""
        return _temporary_folder()

    def publish(self, staged: Path, path: str) -> None:
        """See `Store`; files appear one by one, but readers ignore them until the entry exists."""
        for file in sorted(staged.rglob("*")):
            if file.is_file():
                target = f"{path}/{file.relative_to(staged).as_posix()}"
                with self._written(target):
                    self._files().put_file(str(file), self._path(target))

    def bring(self, files: Sequence[dict[str, Any]]) -> CheckedFiles:
        """See `Store`; files come from this URL's cache; missing or altered ones are downloaded."""
        root = cache_folder() / hashlib.sha256(self._url.encode()).hexdigest()[:32]
        seals = {}
        with told_as_shard_error(cache_folder()):
            for file in files:
                target = root / file["path"]
                seal = seal_of(target) if target.is_file() else None
                if seal is None or seal.sha256 != file["sha256"]:
                    seal = self._download(file, root)
                seals[file["path"]] = seal
        return CheckedFiles(root, seals, self._mend)

    @contextlib.contextmanager
    def fresh(self, files: Sequence[dict[str, Any]]) -> Iterator[CheckedFiles]:
        """See `Store`."""
        with _temporary_folder() as folder:
            seals = {file["path"]: self._download(file, folder) for file in files}
            yield CheckedFiles(folder, seals, self._mend)

    def listing(self) -> list[str] | None:
        """See `Store`; None for web servers, few of which list their folders."""
        if self._kind in _READ_ONLY:
            return None
        start = len(self._path(""))
        with self._told(self._url), contextlib.suppress(FileNotFoundError):
            below = self._files().find(self._path("").rstrip("/"))
            return sorted(path[start:] for path in below)
        return []

    @property
    def _mend(self) -> str:
        # The cached file is a copy, which the next command fetches again if it was altered.
        return (
            f"the same command fetches it again from {self}, which `prior-gen verify "
            f"{shlex.quote(str(self))}` checks and {repairing(self)} mends"
        )

    def _download(self, file: dict[str, Any], root: Path) -> Seal:
        target, path = root / file["path"], file["path"]
        target.parent.mkdir(parents=True, exist_ok=True)
        for left in root.glob(".incoming-*"):  # left by a killed download
            with contextlib.suppress(FileNotFoundError):
                if time.time() - left.stat().st_mtime > _A_DAY:
                    left.unlink()
        incoming = root / f".incoming-{uuid.uuid4().hex}"
        try:
            try:
                with self._told(self / path):
                    self._files().get_file(self._path(path), str(incoming))
            except FileNotFoundError:
                raise ShardError(f"{self / path} is missing") from None
            seal = seal_of(incoming)
            if seal.sha256 != file["sha256"]:
                raise ShardError(f"{self / path} does not match its SHA-256")
            incoming.replace(target)
            return seal
        finally:
            incoming.unlink(missing_ok=True)

    def _is_there(self, path: str) -> bool:
        try:
            self.read(path)
        except FileNotFoundError:
            return False
        return True

    def _path(self, path: str) -> str:
        """`path` as fsspec names it: a URL for a web server, BUCKET/KEY for an object store."""
        url = f"{self._url}/{path}"
        return url if self._kind in _READ_ONLY else url.partition("://")[2]

    def _files(self) -> Any:
        """The fsspec file system, which fsspec caches per process; listings are not cached."""
        try:
            import fsspec

            return fsspec.filesystem(self._kind, use_listings_cache=False)
        except ImportError:
            raise ShardError(f"{self} needs `pip install puicl[remote]`") from None

    @contextlib.contextmanager
    def _told(self, url: str) -> Iterator[None]:
        """Turn any error except a missing file into a `ShardError` of one sentence."""
        try:
            yield
        except (FileNotFoundError, InputError):
            raise
        except Exception as error:
            raise ShardError(f"{url} cannot be read: {_first_line(error)}") from error

    @contextlib.contextmanager
    def _written(self, path: str) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except Exception as error:
            raise ShardError(f"{self / path} cannot be written: {_first_line(error)}") from error


def cache_folder() -> Path:
    """The folder for remote parts: PUICL_CACHE, or `puicl` in the user's cache folder."""
    if chosen := os.environ.get("PUICL_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "puicl"


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
