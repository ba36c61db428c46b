"""Argparse types for the numbers that scripts take as options."""

import argparse


def count(text: str) -> int:
    """A number of tables, draws, rows and so on; raises `argparse.ArgumentTypeError` below 1."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return number


def fraction(text: str) -> float:
    """A share of positives; raises `argparse.ArgumentTypeError` if a class would be empty."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text} does not lie between 0 and 1")
    return number
