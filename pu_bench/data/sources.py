"""Sources of tables: OpenML, the UCI archive, scikit-learn, and published rules."""

import csv
import http.client
import io
import itertools
import urllib.request
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sklearn.datasets import fetch_openml, load_breast_cancer

from pu_bench.data.canonical import read_csv_rows

_TIMEOUT = 60.0
_LARGEST = 200_000_000
# What reading a damaged archive may raise: RuntimeError if it needs a password, KeyError for a
# missing member.
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, csv.Error, EOFError),
    *(KeyError, RuntimeError, ValueError),
)


class SourceError(Exception):
    """Raised if a source cannot provide its table; the text says why in a few words."""


class Source(Protocol):
    """A provider of rows of cells, the target last, in the source's order and spelling."""

    def rows(self, columns: Sequence[str]) -> list[Sequence[object]]:
        """Rows of len(columns) cells; raises `SourceError` if they cannot be had."""

    def __str__(self) -> str:
        """Where this is, for messages and docs."""


@dataclass(frozen=True)
class OpenML:
    """An OpenML data set, fetched by its pinned id through scikit-learn."""

    data_id: int

    def __str__(self) -> str:
        return f"https://www.openml.org/d/{self.data_id}"

    def rows(self, columns):
        """See `Source`; the data set's default target on OpenML is put last."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about retries and versions on the server
                bunch = fetch_openml(
                    data_id=self.data_id, as_frame=True, cache=False, n_retries=1, parser="auto"
                )
        except Exception as error:  # a server's answer may break scikit-learn's reader anywhere
            raise SourceError(f"{self}: {_first_line(error)}") from error
        # Some tables have row numbers as a feature.
        features = bunch.data.drop(
            columns=[name for name in bunch.data.columns if str(name).lower() == "id"]
        )
        if features.shape[1] != len(columns) - 1:
            raise SourceError(
                f"{self} has {features.shape[1]} features, not {len(columns) - 1} as expected"
            )
        table = features.astype(object).where(features.notna(), "")
        return [
            (*row, target)
            for row, target in zip(
                table.itertuples(index=False, name=None), bunch.target.astype(str), strict=True
            )
        ]


@dataclass(frozen=True)
class Archive:
    """Members of a zip file at a URL, concatenated: CSV, or ARFF with dense rows.

    `header`: each member's first row holds column names and is dropped.
    """

    url: str
    members: tuple[str, ...]
    delimiter: str = ","
    header: bool = False
    arff: bool = False

    def __str__(self) -> str:
        return self.url

    def rows(self, columns):
        """See `Source`."""
        content = _download(self.url)
        rows = []
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for member in self.members:
                    name = _find(archive.namelist(), member)
                    if archive.getinfo(name).file_size > _LARGEST:
                        raise ValueError(f"{name} is larger than {_LARGEST / 1e6:.0f} MB")
                    text = archive.read(name).decode("utf-8-sig", errors="replace")
                    if self.arff:
                        text = _after_data(text)
                    part = read_csv_rows(text, self.delimiter)
                    rows += part[1:] if self.header else part
        except _BROKEN as error:
            raise SourceError(f"{self}: {_first_line(error)}") from error
        return rows


@dataclass(frozen=True)
class Bundled:
    """The Wisconsin diagnostic breast cancer table that ships with scikit-learn."""

    def __str__(self) -> str:
        return "scikit-learn's load_breast_cancer"

    def rows(self, columns):
        """See `Source`."""
        table = load_breast_cancer()
        return [
            (*row, "MB"[target])
            for row, target in zip(table.data.tolist(), table.target, strict=True)
        ]


@dataclass(frozen=True)
class Monk:
    """MONK's problem 1, 2 or 3 on all 432 rows, from its rule and without label noise.

    Thrun et al., 1991. Only the published training sample of problem 3 has noise.
    """

    problem: int

    def __str__(self) -> str:
        return f"the rule of MONK's problem {self.problem}"

    def rows(self, columns):
        """See `Source`."""
        grid = itertools.product(*(range(1, levels + 1) for levels in (3, 3, 2, 3, 4, 2)))
        return [(*a, int(self._holds(a))) for a in grid]

    def _holds(self, a: tuple[int, ...]) -> bool:
        if self.problem == 1:
            return a[0] == a[1] or a[4] == 1
        if self.problem == 2:
            return a.count(1) == 2
        return (a[4] == 3 and a[3] == 1) or (a[4] != 4 and a[1] != 3)


def _download(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "puicl"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            content = answer.read(_LARGEST + 1)
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise SourceError(f"{url}: {_first_line(error)}") from error
    if len(content) > _LARGEST:
        raise SourceError(f"{url} is larger than {_LARGEST / 1e6:.0f} MB")
    return content


def _find(names: Sequence[str], member: str) -> str:
    """The archive's name for `member`, in any folder and with spaces or underscores."""

    def plain(name: str) -> str:
        return name.rpartition("/")[2].replace("_", " ").lower()

    return next((name for name in names if plain(name) == plain(member)), member)


def _after_data(text: str) -> str:
    """The rows of an ARFF file, comments left out."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.strip().lower() == "@data":
            return "\n".join(row for row in lines if not row.startswith("%"))
    raise ValueError("no @data in the ARFF file")


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
