"""A self-contained HTML page on a fitted classifier: no scripts or requests, pictures as SVG."""

from html import escape

import numpy as np
import pandas as pd

from puicl_model.classifier import PUICLClassifier
from puicl_model.doubts import in_percent
from puicl_model.importance import MOST_SHUFFLED, permutation_importance
from puicl_model.preprocessing.columns import ENCODERS

_TOP_ROWS = 20
_MOST_BARS = 15

_STYLE = """
:root { --ink: #1d2733; --soft: #5b6875; --line: #dfe5ea; --paper: #fff; --ground: #f4f6f8;
  --blue: #1f5fa8; --amber: #8a5a00; --amber-ground: #fff6e0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --soft: #9aa7b4; --line: #2e3944;
  --paper: #18202a; --ground: #10161d; --blue: #6ba7e8; --amber: #f0c060;
  --amber-ground: #2e2510; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0 0 .75rem; }
p { margin: 0 0 .75rem; } .soft { color: var(--soft); font-size: .9rem; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: .6rem;
  padding: 1.1rem; margin-top: 1rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: 1rem; }
.figures b { display: block; font-size: 1.7rem; line-height: 1.2; font-weight: 600; }
.warning { background: var(--amber-ground); border-color: var(--amber); }
.warning li { margin-bottom: .4rem; } ul { margin: 0; padding-left: 1.2rem; }
.track { position: relative; height: .5rem; margin: .5rem 0 .35rem; border-radius: .25rem;
  background: var(--line); }
.track i { position: absolute; top: 0; bottom: 0; border-radius: .25rem; background: var(--blue);
  opacity: .45; } .track b { position: absolute; top: -.2rem; bottom: -.2rem; width: 3px;
  margin-left: -1.5px; border-radius: 2px; background: var(--blue); }
svg { display: block; width: 100%; height: 11rem; border-bottom: 1px solid var(--soft); }
.bar { fill: var(--blue); }
.ticks { display: flex; justify-content: space-between; margin: .2rem 0 0; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; width: 100%; }
th, td { padding: .35rem .6rem; text-align: left; border-bottom: 1px solid var(--line);
  white-space: nowrap; max-width: 14rem; overflow: hidden; text-overflow: ellipsis; }
th { color: var(--soft); font-weight: 600; } td.number { font-variant-numeric: tabular-nums; }
.importance { display: grid; grid-template-columns: minmax(5rem, 12rem) 1fr 3.5rem;
  gap: .35rem .75rem; align-items: center; font-size: .9rem; }
.importance span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.importance i { display: block; height: .8rem; border-radius: .2rem; background: var(--blue); }
.note { margin: .75rem 0 0; }
@media (max-width: 36rem) { .importance { grid-template-columns: 1fr 3.5rem; gap: 0 .75rem; }
  .importance span:nth-child(3n + 1) { grid-column: 1 / 3; margin-top: .35rem; } }
"""


def report_page(
    classifier: PUICLClassifier,
    features: pd.DataFrame,
    scores: pd.DataFrame,
    id_column: str | None,
    source: str,
    doubts: list[str],
) -> str:
    """Return the page as HTML text.

    features: the columns that were fitted; scores: rows of the output in the same order; doubts:
    warnings.
    """
    report = classifier.report_
    changes = permutation_importance(classifier, features.iloc[classifier.unlabeled_rows_])
    parts = [
        f"<h1>Which rows of {escape(source)} are positive?</h1>",
        f'<p class="soft">{escape(_how(classifier))}</p>',
        _figures(classifier),
        _doubts(doubts),
        _histogram(classifier.unlabeled_proba_),
        _importance(changes, report["columns"]),
        _top_rows(features[list(changes.index)], scores, id_column),
        _columns(report["columns"]),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>PUICL: {escape(source)}</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _how(classifier: PUICLClassifier) -> str:
    report = classifier.report_
    largest = report["largest_context"]
    # A row is read once in each of these passes, even if the table is split into contexts.
    passes, n_columns = len(classifier.column_orders_), len(report["network_columns"])
    each = " for each row" if report["forward_passes"] > passes else ""
    how = f"A single forward pass of a frozen network{each}"
    if passes > 1:
        how = f"{passes} forward passes of a frozen network{each and each + ','} averaged"
    if largest["columns"] < n_columns:
        how += f", each of at most {largest['columns']} of {n_columns} columns or their axes"
    if classifier._blend is not None:
        how += ", blended by rank with trees and nearest rows that learn it on this table"
    rows = "from all rows read together"
    if any(largest[kind] < report[f"n_{kind}"] for kind in ("labeled", "unlabeled")):
        most = f"{largest['labeled']} labelled and {largest['unlabeled']} unlabelled rows"
        rows = f"from the table read in parts of up to {most}"
    return f"{how}. P(positive) of each unlabelled row, {rows}."


def _figures(classifier: PUICLClassifier) -> str:
    report = classifier.report_
    share, (low, high) = classifier.class_prior_, classifier.class_prior_interval_
    given = report.get("class_prior_given")  # older saved fits lack it
    note = "of the unlabelled rows estimated positive"
    if low == high:
        note = "of the unlabelled rows positive, as was given"
    elif given == [low, high]:  # the table adds nothing
        note += f", within {in_percent(given)}, as was given"
    elif np.isnan(low):
        note += "; these weights do not say how sure, so there is no interval"
    else:
        known = classifier.model_card_.get("class_prior_interval")  # older saved fits lack it
        nominal = f"{known['coverage']:.0%} " if known else ""
        note += f"; {nominal}interval {low:.1%} to {high:.1%}"
        if given:
            note += f", within {in_percent(given)}, as was given"
    band = "" if np.isnan(low) else _band(low, high)
    track = f'<div class="track">{band}<b style="left:{100 * share:.1f}%"></b></div>'
    called = int((classifier.unlabeled_proba_ >= 0.5).sum())
    cells = [
        (f"{share:.1%}", track + note),
        (f"{called:,}", "rows with P(positive) of at least one half"),
        (f"{report['n_labeled']:,}", "labelled positives"),
        (f"{report['n_unlabeled']:,}", "unlabelled rows"),
    ]
    inner = "".join(
        f'<div><b>{value}</b><div class="soft">{text}</div></div>' for value, text in cells
    )
    return f'<section class="figures">{inner}</section>'


def _band(low: float, high: float) -> str:
    return f'<i style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></i>'


def _doubts(doubts: list[str]) -> str:
    if not doubts:
        return ""
    items = "".join(f"<li>{escape(doubt)}</li>" for doubt in doubts)
    return f'<section class="warning"><h2>Before you trust this</h2><ul>{items}</ul></section>'


def _histogram(proba: np.ndarray) -> str:
    counts, _ = np.histogram(proba, bins=25, range=(0, 1))
    top, bars = counts.max(), []
    for k, count in enumerate(counts):
        height = 170 * count / top
        bars.append(
            f'<rect class="bar" x="{22 * k + 1}" y="{176 - height:.1f}" width="20" '
            f'height="{height:.1f}"><title>{k / 25:.2f} to {(k + 1) / 25:.2f}: {count} rows'
            "</title></rect>"
        )
    ticks = "".join(f"<span>{x:g}</span>" for x in (0, 0.25, 0.5, 0.75, 1))
    low, middle, high = np.quantile(proba, (0.25, 0.5, 0.75))
    said = (
        f"Histogram of P(positive): {(proba < 0.2).sum():,} rows below 0.2, "
        f"{(proba >= 0.8).sum():,} of 0.8 or more; quartiles {low:.2f}, {middle:.2f}, {high:.2f}"
    )
    return (
        "<section><h2>Unlabelled rows by P(positive)</h2>"
        f'<p class="soft">The highest bar is {top:,} of {len(proba):,} rows.</p>'
        '<svg viewBox="0 0 550 176" preserveAspectRatio="none" role="img" '
        f'aria-label="{said}">{"".join(bars)}</svg>'
        f'<div class="soft ticks">{ticks}</div></section>'
    )


def _importance(changes: pd.Series, kinds: dict[str, str]) -> str:
    used = sum(kind in ENCODERS for kind in kinds.values())
    which = ""
    if used > MOST_SHUFFLED:
        which = (
            f" Of {used} columns only the {MOST_SHUFFLED} that alone tell labelled from "
            "unlabelled rows best were shuffled."
        )
    changes = changes.head(_MOST_BARS)
    most = max(changes.max(), 1e-12)
    rows = "".join(
        f'<span title="{escape(str(name))}">{escape(str(name))}</span>'
        f'<i style="width:{100 * value / most:.1f}%"></i><span>{value:.3f}</span>'
        for name, value in changes.items()
    )
    return (
        "<section><h2>Columns that move the score most</h2>"
        f'<div class="importance">{rows}</div><p class="soft note">Mean '
        "change of P(positive) when a column's cells are shuffled among the rows. It says what the "
        f"score depends on, not what causes the class.{which}</p></section>"
    )


def _top_rows(features: pd.DataFrame, scores: pd.DataFrame, id_column: str | None) -> str:
    best = scores.dropna(subset="p_positive").nlargest(_TOP_ROWS, "p_positive")
    head = ["row", *([id_column] if id_column else []), "P(positive)", *features.columns]
    lines = []
    for position in best.index:  # cell by cell, because in a row integers would become floats
        names = ["row", *([id_column] if id_column else [])]
        first = [best.at[position, name] for name in names]
        cells = [features.at[position, name] for name in features]
        cells = [*first, f"{best.at[position, 'p_positive']:.3f}", *cells]
        lines.append("".join(f'<td class="number">{escape(_cell(cell))}</td>' for cell in cells))
    header = "".join(f"<th>{escape(str(name))}</th>" for name in head)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f"<section><h2>The {len(best)} unlabelled rows most likely positive</h2>"
        f'<div class="scroll"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>'
        '</div><p class="soft note">Columns that move the score most come first; scroll sideways '
        "for the others.</p></section>"
    )


def _columns(kinds: dict[str, str]) -> str:
    by_kind: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        by_kind.setdefault(kind, []).append(name)
    items = "".join(
        f"<li><b>{escape(kind)}</b>: {escape(', '.join(names))}</li>"
        for kind, names in by_kind.items()
    )
    return f"<section><h2>How the columns were read</h2><ul>{items}</ul></section>"


def _cell(value) -> str:
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return ""
    if not isinstance(value, float):
        return str(value)
    # Integers in a column with missing cells are floats.
    whole = value.is_integer() and abs(value) <= 2**53
    return f"{value:.0f}" if whole else f"{value:.6g}"
