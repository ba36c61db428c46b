"""The 20 tasks: sources of each table, its positive class, and what is left out of it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pu_bench.data.canonical import CanonicalTable, Table, canonical_table, encode
from pu_bench.data.sources import Archive, Bundled, Monk, OpenML, Source

_UCI = "https://archive.ics.uci.edu/static/public"
PINS = json.loads((Path(__file__).parent / "pins.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class TaskSpec:
    """One task.

    `sources` are tried in order. `rule` maps a class (as text) to its group: the first (True), the
    second (False) or neither (None: the row is left out). The larger group is the positive class,
    or the first if they tie. `categorical` names columns whose numbers are codes, and `dropped`
    those that are not used. With `complete_rows`, rows with a missing cell are left out; `max_rows`
    keeps only a source's first rows. `licence` is that of the data, `origin` where they were
    published.
    """

    name: str
    title: str
    sources: tuple[Source, ...]
    rule: Callable[[str], bool | None]
    origin: str
    licence: str = "CC BY 4.0"
    categorical: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    complete_rows: bool = False
    max_rows: int | None = None
    target_codes: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the canonical table's columns, `target` last."""
        return tuple(PINS[self.name]["columns"])

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical table."""
        return PINS[self.name]["sha256"]

    @property
    def n_rows(self) -> int:
        """Rows of the canonical table."""
        return PINS[self.name]["rows"]

    @property
    def needs_network(self) -> bool:
        """Whether the table has to be fetched."""
        return not isinstance(self.sources[0], Bundled | Monk)

    def canonical(self, rows: Sequence[Sequence[object]]) -> CanonicalTable:
        """A source's rows in canonical form; raises `ValueError` as `canonical_table` does."""
        return canonical_table(self.columns, rows[: self.max_rows], self.target_codes)

    def table(self, canonical: CanonicalTable) -> Table:
        """The canonical table, reduced and encoded for the protocol."""
        return encode(
            self.reduce(canonical), self.name, self.title, self.positive, self.categorical
        )

    def reduce(self, table: CanonicalTable) -> CanonicalTable:
        """The table without the columns and rows that the task leaves out."""
        kept = [place for place, name in enumerate(table.columns) if name not in self.dropped]
        rows = [tuple(row[place] for place in kept) for row in table.rows]
        rows = [row for row in rows if self.rule(row[-1]) is not None]
        if self.complete_rows:
            rows = [row for row in rows if all(row)]
        return CanonicalTable(tuple(table.columns[place] for place in kept), tuple(rows))

    def positive(self, classes: Sequence[str]) -> np.ndarray:
        """Boolean [n]: membership in the larger group, or in the first if they tie."""
        return larger_group([bool(self.rule(label)) for label in classes])


def larger_group(first: Sequence[bool]) -> np.ndarray:
    """Boolean [n]: membership in the larger of two groups, or in the first if they tie."""
    belongs = np.asarray(first, dtype=bool)
    return belongs if 2 * belongs.sum() >= len(belongs) else ~belongs


def _is(label: str) -> Callable[[str], bool]:
    return lambda text: text == label


def _openml(number: int) -> tuple[Source, ...]:
    return (OpenML(number),)


def _uci(number: int, slug: str, *members: str, **options) -> tuple[Source, ...]:
    return (Archive(f"{_UCI}/{number}/{slug}.zip", members, **options),)


_SPECS = (
    TaskSpec(
        "diabetes",
        "Diabetes",
        _openml(37),
        _is("0"),
        "Pima Indians Diabetes, OpenML 37",
        licence="public (OpenML)",
        target_codes={"tested_negative": "0", "tested_positive": "1"},
    ),
    TaskSpec("haberman", "Haberman", _openml(43), _is("1"), "UCI 43, OpenML 43"),
    TaskSpec(
        "heart",
        "Heart",
        _openml(53),
        _is("1"),
        "UCI 145 (Statlog), OpenML 53",
        categorical=frozenset(
            (
                *("sex", "chest_pain_type", "fasting_blood_sugar", "resting_ecg"),
                *("exercise_angina", "thal"),
            )
        ),
        target_codes={"absent": "1", "present": "2"},
    ),
    TaskSpec(
        "ilpd",
        "ILPD",
        _uci(225, "ilpd+indian+liver+patient+dataset", "Indian Liver Patient Dataset (ILPD).csv"),
        _is("1"),
        "UCI 225",
    ),
    TaskSpec("monk1", "MONK-1", (Monk(1),), _is("1"), "UCI 70, from its rule"),
    TaskSpec("monk2", "MONK-2", (Monk(2),), _is("0"), "UCI 70, from its rule"),
    TaskSpec("monk3", "MONK-3", (Monk(3),), _is("1"), "UCI 70, from its rule"),
    TaskSpec(
        "abalone", "Abalone", _openml(183), lambda rings: int(rings) >= 9, "UCI 1, OpenML 183"
    ),
    TaskSpec(
        "adult",
        "Adult",
        _uci(2, "adult", "adult.data"),
        _is("<=50K"),
        "UCI 2, the first 32,561 rows",
        complete_rows=True,
        max_rows=32561,
    ),
    TaskSpec(
        "banknote",
        "Banknote",
        _openml(1462),
        _is("0"),
        "UCI 267, OpenML 1462",
        target_codes={"1": "0", "2": "1"},
    ),
    TaskSpec(
        "car",
        "Car",
        _openml(21),
        lambda label: label in ("unacc", "acc"),
        "UCI 19, OpenML 21",
    ),
    TaskSpec(
        "default_credit",
        "Default Credit",
        _openml(42477),
        _is("0"),
        "UCI 350, OpenML 42477",
        categorical=frozenset(("sex", "education", "marriage")),
    ),
    TaskSpec(
        "iranian_churn",
        "Iranian Churn",
        _uci(563, "iranian+churn+dataset", "Customer Churn.csv", header=True),
        _is("0"),
        "UCI 563",
        categorical=frozenset(("complains", "tariff_plan", "status")),
    ),
    TaskSpec(
        "letter",
        "Letter C vs U",
        _openml(6),
        lambda letter: {"C": False, "U": True}.get(letter),
        "UCI 59, OpenML 6",
    ),
    TaskSpec("magic", "MAGIC Gamma", _openml(1120), _is("g"), "UCI 159, OpenML 1120"),
    TaskSpec(
        "mushroom",
        "Mushroom",
        _openml(24),
        _is("e"),
        "UCI 73, OpenML 24",
        dropped=frozenset(("stalk_root",)),
    ),
    TaskSpec(
        "rice",
        "Rice",
        _uci(545, "rice+cammeo+and+osmancik", "Rice_Cammeo_Osmancik.arff", arff=True),
        _is("Osmancik"),
        "UCI 545",
    ),
    TaskSpec("spambase", "Spambase", _openml(44), _is("0"), "UCI 94, OpenML 44"),
    TaskSpec("wdbc", "WDBC", (Bundled(),), _is("B"), "UCI 17, with scikit-learn"),
    TaskSpec(
        "wine_quality",
        "Wine Quality",
        _openml(287),
        lambda quality: int(quality) >= 6,
        "UCI 186, OpenML 287",
    ),
)
# The positive class in words, for docs and reports.
POSITIVE = {
    "diabetes": "no diabetes",
    "haberman": "survived 5 years",
    "heart": "no heart disease",
    "ilpd": "liver patient",
    "monk1": "the rule holds (a tie)",
    "monk2": "the rule does not hold",
    "monk3": "the rule holds",
    "abalone": "9 rings or more, the median",
    "adult": "income <= 50K",
    "banknote": "genuine",
    "car": "unacc or acc, not good or vgood",
    "default_credit": "no default",
    "iranian_churn": "no churn",
    "letter": "U, not C",
    "magic": "gamma",
    "mushroom": "edible",
    "rice": "Osmancik",
    "spambase": "no spam",
    "wdbc": "benign",
    "wine_quality": "quality 6 or more",
}
TASKS: dict[str, TaskSpec] = {spec.name: spec for spec in _SPECS}
