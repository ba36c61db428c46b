"""How all pictures are drawn: Matplotlib without the user's settings, as PNG of the same bytes."""

import contextlib
import io
from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

INK = "#222222"


def quiet_settings(size: float, legend: float, lines: str) -> dict[str, Any]:
    """Matplotlib's settings for type of `size` points and thin axes of the colour `lines`."""
    return {
        "font.family": "DejaVu Sans",
        "font.size": size,
        "axes.titlesize": size,
        "axes.labelsize": size,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": legend,
        "legend.frameon": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": lines,
        "axes.linewidth": 0.7,
        "xtick.color": INK,
        "ytick.color": INK,
        "text.color": INK,
        "axes.labelcolor": INK,
    }


@contextlib.contextmanager
def in_style(settings: Mapping[str, Any]) -> Iterator[None]:
    """Matplotlib's defaults and these, whatever the user's own matplotlibrc says."""
    with style.context(["default", dict(settings)]):
        yield


def blank_figure(width: float, height: float) -> Figure:
    """A figure drawn by Agg that no global state knows of; inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def as_png(figure: Figure, dpi: float) -> bytes:
    """The figure as PNG of 128 colours, a third of the size; no date or version in it."""
    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=dpi)
    image = Image.open(full).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
    return small.getvalue()
