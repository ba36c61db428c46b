"""How all pictures look: one size of type, colours that colour-blind readers tell apart."""

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

WIDTH = 7.0
DPI = 130
# Okabe and Ito's palette.
POSITIVE, NEGATIVE = "#0072B2", "#D55E00"
TREES, LOGISTIC = "#009E73", "#B0568C"
INK, QUIET, BAND = "#222222", "#767676", "#E4E4E4"
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "axes.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "text.color": INK,
    "axes.labelcolor": INK,
    "svg.hashsalt": "puicl",
}
# Marks of the three groups of rows: (group, label, colour, marker, filled, size).
ROW_MARKS = (
    (0, "unlabelled, negative", NEGATIVE, "^", False, 13),
    (1, "unlabelled, positive", POSITIVE, "o", False, 13),
    (2, "labelled positive", POSITIVE, "o", True, 11),
)


@dataclass(frozen=True)
class Picture:
    """A finished figure: `name`.png, a heading, what one sees, and a short text for no eyes."""

    name: str
    title: str
    caption: str
    alt: str
    png: bytes


@contextlib.contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib's defaults and ours, whatever the user's own matplotlibrc says."""
    with style.context(["default", _SETTINGS]):
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """A figure drawn by Agg that no global state knows of; inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png_of(figure: Figure) -> bytes:
    """The figure as PNG of 128 colours, a third of the size; no date or version in it."""
    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=DPI, metadata={"Software": None})
    image = Image.open(full).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
    return small.getvalue()


def scatter_rows(axes: Axes, points: np.ndarray, groups: np.ndarray, scale: float = 1.0) -> None:
    """Rows of a task as marks by group, [n, 2]; the labelled last, so that none is hidden."""
    for group, label, colour, marker, filled, size in ROW_MARKS:
        here = points[groups == group]
        axes.scatter(
            here[:, 0],
            here[:, 1],
            s=size * scale,
            marker=marker,
            facecolors=colour if filled else "none",
            edgecolors="white" if filled else colour,
            linewidths=0.3 if filled else 0.7,
            alpha=0.9,
            label=label,
        )


def bulk_limits(values: np.ndarray, share: float = 0.98, margin: float = 0.08):
    """Axis limits around the middle `share` of the values, so that outliers do not rule."""
    low, high = np.quantile(values, [(1 - share) / 2, (1 + share) / 2])
    room = (high - low) * margin or 1.0
    return low - room, high + room
