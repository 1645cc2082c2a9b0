"""Numbers on a command line: types for argparse that say what is expected."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def whole(least: int) -> Callable[[str], int]:
    """Return a type of whole numbers from `least` on."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r}: a whole number, {least} or more")
        return number

    return parse


def between(least: float, most: float) -> Callable[[str], float]:
    """Return a type of numbers from `least` to `most`."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text!r}: a number from {least:g} to {most:g}")
        return number

    return parse
