"""How the report's pictures look: narrow enough for a phone, few colours, quiet lines."""

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

WIDTH = 5.2
DPI = 170
INK, QUIET, BAND = "#222222", "#8a8a8a", "#E6E6E6"
# Okabe and Ito's palette: PUICL and the paper's rivals keep their colours in every picture.
COLOURS = {
    "puicl": "#0072B2",
    "empu": "#E69F00",
    "vpu": "#CC79A7",
    "ted": "#009E73",
    "ulsif": "#D55E00",
}
_OTHERS = ("#56B4E9", "#7A5195", "#6B6B6B", "#9C7A3C", "#3B7A57", "#B03A48")
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "axes.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.labelcolor": INK,
}


@dataclass(frozen=True)
class Picture:
    """A finished figure: `name`.png, what one sees, and a short text for no eyes."""

    name: str
    caption: str
    alt: str
    png: bytes


@contextlib.contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib's defaults and ours, whatever the user's own matplotlibrc says."""
    with style.context(["default", _SETTINGS]):
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """A figure that no global state knows of; inches."""
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


def colour_of(method: str, methods: list[str]) -> str:
    """A method's colour; beyond the paper's, by place among the others."""
    if method in COLOURS:
        return COLOURS[method]
    others = [name for name in methods if name not in COLOURS]
    return _OTHERS[others.index(method) % len(_OTHERS)]


def spread_apart(values: list[float], gap: float) -> list[float]:
    """Places near `values` that keep a distance of `gap`, in the same order."""
    order = sorted(range(len(values)), key=values.__getitem__)
    placed = [values[i] for i in order]
    for _ in range(200):
        moved = False
        for k in range(len(placed) - 1):
            lack = gap - (placed[k + 1] - placed[k])
            if lack > 1e-9:
                placed[k] -= lack / 2
                placed[k + 1] += lack / 2
                moved = True
        if not moved:
            break
    places = [0.0] * len(values)
    for i, place in zip(order, placed, strict=True):
        places[i] = place
    return places
