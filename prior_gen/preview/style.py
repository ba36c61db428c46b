"""Common style of all pictures: one font size, and colours that suit colour-blind readers."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from puicl_config.pictures import INK as INK
from puicl_config.pictures import as_png, blank_figure, in_style, quiet_settings

WIDTH = 7.0
DPI = 130
# Okabe and Ito's palette.
POSITIVE, NEGATIVE = "#0072B2", "#D55E00"
TREES, LOGISTIC = "#009E73", "#B0568C"
QUIET, BAND = "#767676", "#E4E4E4"
_SETTINGS = quiet_settings(9, legend=8.5, lines=QUIET) | {
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
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
    """A finished figure: `png` for the file `name`.png, with heading, caption and alt text."""

    name: str
    title: str
    caption: str
    alt: str
    png: bytes


def house_style() -> AbstractContextManager[None]:
    """Matplotlib's defaults with our settings, regardless of the user's matplotlibrc."""
    return in_style(_SETTINGS)


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """A figure outside pyplot's global state; height and width in inches."""
    return blank_figure(width, height)


def png_of(figure: Figure) -> bytes:
    """The figure as PNG; see `as_png`."""
    return as_png(figure, DPI)


def scatter_rows(axes: Axes, points: np.ndarray, groups: np.ndarray, scale: float = 1.0) -> None:
    """Plot rows of a task as marks by group, labelled rows last, so that none of these is hidden.

    points: [n, 2]; groups: [n], as in `Example.groups`.
    """
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


def bulk_limits(values: np.ndarray, share: float = 0.98):
    """Axis limits (low, high) around the middle `share` of the values, to ignore outliers."""
    low, high = np.quantile(values, [(1 - share) / 2, (1 + share) / 2])
    room = (high - low) * 0.08 or 1.0
    return low - room, high + room
