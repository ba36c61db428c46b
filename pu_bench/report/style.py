"""Style of the report's pictures: narrow enough for a phone, few colours, light lines."""

from contextlib import AbstractContextManager
from dataclasses import dataclass

from matplotlib.figure import Figure

from puicl_config.pictures import INK as INK
from puicl_config.pictures import as_png, blank_figure, in_style, quiet_settings

WIDTH = 5.2
DPI = 170
QUIET, BAND = "#8a8a8a", "#E6E6E6"
# Okabe and Ito's palette: PUICL and the paper's rivals keep their colours in every picture.
COLOURS = {
    "puicl": "#0072B2",
    "empu": "#E69F00",
    "vpu": "#CC79A7",
    "ted": "#009E73",
    "ulsif": "#D55E00",
}
_OTHERS = ("#56B4E9", "#7A5195", "#6B6B6B", "#9C7A3C", "#3B7A57", "#B03A48")
_SETTINGS = quiet_settings(8.5, legend=8, lines=QUIET)


@dataclass(frozen=True)
class Picture:
    """A finished figure: its file `name`.png, caption, alternative text and content."""

    name: str
    caption: str
    alt: str
    png: bytes


def house_style() -> AbstractContextManager[None]:
    """Context with Matplotlib's defaults and our settings, ignoring the user's matplotlibrc."""
    return in_style(_SETTINGS)


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """A figure outside pyplot's global state; height and width in inches."""
    return blank_figure(width, height)


def png_of(figure: Figure) -> bytes:
    """The figure as PNG; see `as_png`."""
    return as_png(figure, DPI)


def colour_of(method: str, methods: list[str]) -> str:
    """A method's colour: fixed for PUICL and the paper's rivals, by place for the others."""
    if method in COLOURS:
        return COLOURS[method]
    others = [name for name in methods if name not in COLOURS]
    return _OTHERS[others.index(method) % len(_OTHERS)]


def spread_apart(values: list[float], gap: float) -> list[float]:
    """Places near `values`, in the same order, at least `gap` apart."""
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
