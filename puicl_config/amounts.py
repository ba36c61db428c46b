"""Amounts in words: times, sizes and counts."""


def duration(seconds: float) -> str:
    """Seconds as `42s`, `3m05s` or `2h07m`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def volume(n_bytes: float) -> str:
    """A number of bytes as `42 bytes`, `1.5 kB`, `512 MB` or `37.6 GB`, to three digits."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= 0.9995 * factor:
            return f"{float(f'{n_bytes / factor:.3g}'):,g} {unit}"
    return counted(round(n_bytes), "byte")


def counted(number: int, noun: str) -> str:
    """A number of things, such as `1 part` or `14,400 tasks`; `noun` is the singular."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"
