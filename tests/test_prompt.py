"""Context strings and prompts: each other's inverse, whatever a data set's text holds."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError
from s2s_tasks.prompt import Prompt, Request, move_boundary, parse_request, split_context

texts = st.text(st.sampled_from("<|audio:0123|>\n é下"), max_size=24) | st.text(max_size=12)
recordings = st.builds(
    Audio,
    path=st.text(min_size=1, max_size=5),
    sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    sampling_rate=st.sampled_from([8000, 16000, 44100]),
    frames=st.integers(1, 10**6),
    channels=st.integers(1, 2),
    cell=st.none() | st.just("context_audio/3/0"),
)
prompts = st.lists(texts | recordings, max_size=6).map(lambda parts: Prompt.of(*parts))


@given(prompts)
def test_a_prompt_survives_its_request(prompt: Prompt) -> None:
    assert parse_request(*prompt.to_request()) == prompt


@given(texts)
def test_a_lookalike_is_text(text: str) -> None:
    context, _ = Prompt.of(text).to_request()
    assert [piece for piece in split_context(context) if isinstance(piece, int)] == []
    assert "".join(map(str, split_context(context))) == text


@given(prompts)
def test_neighbouring_texts_are_one_segment(prompt: Prompt) -> None:
    kinds = [isinstance(segment, str) for segment in prompt.segments]
    assert (True, True) not in pairwise(kinds)
    assert "" not in prompt.segments


def test_a_placeholder_without_its_recording_is_refused() -> None:
    with pytest.raises(S2STasksError, match="names recording 0, but 0 came"):
        parse_request("listen: <|audio:0|>", [])


def test_a_recording_without_its_placeholder_is_refused() -> None:
    _, handles = Prompt.of(Audio("a.wav", "0" * 64, 16000, 100, 1)).to_request()
    with pytest.raises(S2STasksError, match="does not name them all"):
        parse_request("listen:", handles)


@pytest.mark.parametrize(
    ("context", "continuation", "moved"),
    [
        ("a  ", "b", ("a", "  b")),
        ("a", " b", ("a", " b")),
        ("a\n", "b", ("a\n", "b")),
        ("", "b", ("", "b")),
    ],
)
def test_boundary_spaces_belong_to_the_continuation(
    context: str, continuation: str, moved: tuple[str, str]
) -> None:
    request = move_boundary(Request(Prompt.of(context), continuation))
    assert (request.prompt.text, request.continuation) == moved
