"""How far a comparison of per-question values can be trusted: intervals, tests, calibration.

A question is one entry of every array: a mean in [0, 1] (an accuracy) or any real number (a
margin of losses). `clusters` names what each question was made from; questions of one cluster
are resampled together. Arrays that are compared are aligned by the caller.
"""

from s2s_tasks.inference.gap import Gap, Test, holm, minimum_detectable_gap, paired_gap
from s2s_tasks.inference.intervals import CONFIDENCE, Interval, mean_interval
from s2s_tasks.inference.reliability import Calibration, CalibrationBin, calibration

__all__ = [
    "CONFIDENCE",
    "Calibration",
    "CalibrationBin",
    "Gap",
    "Interval",
    "Test",
    "calibration",
    "holm",
    "mean_interval",
    "minimum_detectable_gap",
    "paired_gap",
]
