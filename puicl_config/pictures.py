"""Drawing of all pictures: Matplotlib without the user's settings, saved as reproducible PNG."""

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
    """Matplotlib settings: fonts of `size` and `legend` points, thin axes in the colour `lines`."""
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
    """Apply Matplotlib's defaults and `settings`, regardless of the user's matplotlibrc."""
    with style.context(["default", dict(settings)]):
        yield


def blank_figure(width: float, height: float) -> Figure:
    """A figure for Agg outside pyplot's global state; width and height in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def as_png(figure: Figure, dpi: float) -> bytes:
    """The figure as PNG without date or version; 128 colours reduce it to a third of the size."""
    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=dpi)
    image = Image.open(full).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
    return small.getvalue()
