"""Whether a model is as often right as it is sure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from s2s_tasks.inference.clusters import are_shares, finite_values
from s2s_tasks.inference.intervals import Interval, mean_interval


@dataclass(frozen=True)
class CalibrationBin:
    """Choices made with similar confidence."""

    confidence: float
    """Their mean confidence."""
    accuracy: Interval
    count: int


@dataclass(frozen=True)
class Calibration:
    """Confidence against accuracy, for choices between two endings."""

    bins: tuple[CalibrationBin, ...]
    """By rising confidence."""
    expected_error: float
    """Mean over choices of the distance between confidence and accuracy of their bin."""


def calibration(probability_of_true: npt.ArrayLike, bins: int = 10) -> Calibration:
    """Sort choices between a true and a false ending into bins of similar confidence.

    `probability_of_true` is of shape (choices,). Confidence is the probability of the likelier
    ending; a tie is half right. The expected calibration error is that of Naeini et al. 2015
    (AAAI) and Guo et al. 2017 (arXiv 1706.04599, equation 3), over bins of equal counts instead
    of equal widths (Nguyen and O'Connor 2015, arXiv 1508.05154), because confidences crowd
    together. Equal confidences share a bin, so there may be fewer bins than `bins`.

    Raises:
        ValueError: when there are no probabilities, some are outside [0, 1], or `bins` is below 1.
    """
    checked = finite_values(probability_of_true)
    if not are_shares(checked):
        raise ValueError("probabilities must lie in [0, 1]")
    if bins < 1:
        raise ValueError(f"cannot sort choices into {bins} bins")
    confidence = np.maximum(checked, 1 - checked)
    correct = np.where(checked == 0.5, 0.5, checked > 0.5)
    place = (rankdata(confidence, method="min").astype(int) - 1) * bins // len(checked)
    filled = [place == index for index in np.unique(place)]
    result = tuple(
        CalibrationBin(
            confidence=float(confidence[inside].mean()),
            accuracy=mean_interval(correct[inside]),
            count=int(inside.sum()),
        )
        for inside in filled
    )
    error = sum(part.count * abs(part.confidence - part.accuracy.estimate) for part in result)
    return Calibration(result, error / len(checked))
