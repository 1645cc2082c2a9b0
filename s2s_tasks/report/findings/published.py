"""What others have published on the same kind of sets: for orientation, never beside our rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from s2s_tasks.report.document import Section, Table

NONE = np.nan
COLUMNS = ("model", "size", "mode as printed", "sStoryCloze", "zh-sStoryCloze", "sCMMLU", "source")
ROWS: tuple[tuple[Any, ...], ...] = (
    ("Text LLM of Baichuan-Audio", "7B", "T→T", 83.0, 76.1, 70.3, "2502.17239, Table 5"),
    ("Baichuan-Audio, two stages", "7B", "S→T", 79.6, 72.4, 69.3, "2502.17239, Table 5"),
    ("Baichuan-Audio, one stage", "7B", "S→T", 77.5, 70.1, 67.0, "2502.17239, Table 5"),
    ("GLM-4-Voice", "9B", "S→T", 76.3, 70.3, 64.3, "2502.17239, Table 5"),
    ("Moshi", "7B", "S→T", 60.8, NONE, NONE, "2502.17239, Table 5"),
    ("TWIST", "7B", "S→T", 53.3, NONE, NONE, "2502.17239, Table 5"),
    ("GLM-4-Voice", "9B", "S→T", 76.3, NONE, NONE, "2412.02612, Table 3"),
    ("GLM-4-Voice", "9B", "S→S", 62.4, NONE, NONE, "2412.02612, Table 3"),
    ("Moshi", "7B", "S→S", 60.8, NONE, NONE, "2412.02612, Table 3"),
    ("TWIST", "7B", "S→S", 53.3, NONE, NONE, "2412.02612, Table 3"),
    ("Spirit LM Base", "7B", "T→T", 79.4, NONE, NONE, "2402.05755, Table 4"),
    ("Spirit LM Base", "7B", "S→T", 64.6, NONE, NONE, "2402.05755, Table 4"),
    ("Spirit LM Base", "7B", "S→S", 61.0, NONE, NONE, "2402.05755, Table 4"),
    ("Llama-2 after an ASR", "7B", "S→T", 75.7, NONE, NONE, "2402.05755, Table 4"),
    ("TWIST", "13B", "S→S", 55.4, NONE, NONE, "2402.05755, Table 4"),
)
CAUTIONS = (
    "Accuracies in percent out of papers (arXiv numbers), on other recordings and with other "
    "normalisation than here: a difference to a row measured here is no finding.",
    "In 2502.17239 the zh-sStoryCloze and sCMMLU values of GLM-4-Voice are those of its instruct "
    "model. Its Moshi and TWIST rows have the numbers that 2412.02612 prints as S→S, so the mode "
    "printed there looks like a slip; 53.3 is also what 2402.05755 prints for GSLM, where TWIST "
    "has 55.4. The 76.3 of GLM-4-Voice was measured by its authors on speech of their own.",
    "sCMMLU is most probably counted in pairs, so that chance is 50 % there too.",
)


def section() -> Section:
    """Show the published numbers with their cautions."""
    frame = pd.DataFrame(ROWS, columns=list(COLUMNS))
    formats = dict.fromkeys(("sStoryCloze", "zh-sStoryCloze", "sCMMLU"), "{:.1f}")
    return Section(
        "published",
        "Published numbers, for orientation",
        CAUTIONS,
        [
            Table(
                "published-numbers", "As published, not measured here", frame, formats, folded=True
            )
        ],
    )
