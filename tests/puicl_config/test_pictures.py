"""Pictures are drawn alike whatever the user's Matplotlib is set to, and say nothing of it."""

import matplotlib as mpl

from puicl_config.pictures import as_png, blank_figure, in_style, quiet_settings


def drawn() -> bytes:
    with in_style(quiet_settings(8.5, legend=8, lines="#888888")):
        figure = blank_figure(2.0, 1.5)
        figure.add_subplot().plot([0, 1], [1, 0])
        return as_png(figure, 50)


def test_a_users_own_settings_change_no_picture():
    plain = drawn()
    with mpl.rc_context({"axes.grid": True, "lines.linewidth": 9.0, "font.size": 30.0}):
        assert drawn() == plain
        assert mpl.rcParams["axes.grid"]  # which are his again afterwards


def test_a_picture_names_neither_its_maker_nor_a_day():
    png = drawn()
    assert png.startswith(b"\x89PNG")
    assert [chunk for chunk in (b"tEXt", b"iTXt", b"zTXt", b"tIME") if chunk in png] == []
