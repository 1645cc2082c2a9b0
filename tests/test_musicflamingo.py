"""What Music Flamingo's own processor makes its model fail at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from families import musicflamingo
from scoring import scores

from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import probe
from s2s_tasks.prompt import Prompt, Request


@pytest.mark.parametrize("frames", [160, 320])
def test_a_window_without_positions_is_left_out(tmp_path: Path, frames: int) -> None:
    musicflamingo.save(tmp_path)
    adapter = HFAdapter(str(tmp_path), dtype="float32", device="cpu")
    whole = np.random.default_rng(0).normal(scale=0.1, size=30 * 16000 + frames).astype("float32")
    requests = []
    for name, signal in (("whole", whole), ("window", whole[: 30 * 16000])):
        path = tmp_path / f"{name}.wav"
        soundfile.write(path, signal, 16000, subtype="FLOAT")
        requests.append(Request(Prompt.of("Hm: ", probe(path)), " he was glad"))
    found = scores(adapter, requests, 2)
    expected = pytest.approx(found[requests[1]].token_logprobs, abs=2e-4)
    assert found[requests[0]].token_logprobs == expected
