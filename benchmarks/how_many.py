"""Numbers that scripts take as options, refused by argparse where they make no sense."""

import argparse


def count(text: str) -> int:
    """How many tables, draws, rows and the like. Raises `argparse.ArgumentTypeError` below 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return number


def fraction(text: str) -> float:
    """A share of positives. Raises `argparse.ArgumentTypeError` where a class would be empty."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text} does not lie between 0 and 1")
    return number
