"""A judge behind any endpoint that speaks OpenAI's chat protocol and hears `input_audio` parts."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import openai
from openai import OpenAI

from s2s_tasks.arena.judges.contract import JudgeError, Reply
from s2s_tasks.arena.judges.presenting import Presentation, wav
from s2s_tasks.arena.records import Instruction
from s2s_tasks.audio import Audio

GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta/openai/"
GEMINI_KEY = "GEMINI_API_KEY"
OPENAI_KEY = "OPENAI_API_KEY"
RETRIES = 5
"""After a failed request; the waits between them double, to 8 s, or are what the server asks."""
TIMEOUT = 180.0
"""Seconds for one request: models that think take a minute or more."""
_FILTERED = ("content_filter", "content_policy_violation")
_NO_KEY = "no-key-needed"
_SHOWN = 300
"""Characters of what is no reply."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class OpenAIChatJudge:
    """A chat model that hears."""

    model: str
    presentation: Presentation
    base_url: str | None = None
    """Of the endpoint; by default Google's for `gemini-…`, else OpenAI's."""
    key_variable: str | None = None
    """Environment variable that holds the key, by default GEMINI_API_KEY or OPENAI_API_KEY. A
    server on this computer needs none."""
    retries: int = RETRIES
    timeout: float = TIMEOUT

    concurrent = True

    def __post_init__(self) -> None:
        """Refuse what cannot be the address of an endpoint.

        Raises:
            JudgeError: when it is no URL.
        """
        if self.base_url is None:
            return
        try:
            url = urlsplit(self.base_url)
        except ValueError:
            url = urlsplit("")
        if url.scheme not in ("http", "https") or not url.hostname:
            raise JudgeError(
                f"{self.base_url!r} is no URL of an endpoint, as http://host:8000/v1 is"
            )

    @property
    def name(self) -> str:
        """The model."""
        return self.model

    @property
    def version(self) -> str:
        """Of prompt, mode and presentation; the endpoint's own version is in the model's name."""
        return f"{self.presentation.rubric.mode}-{self.presentation.identity}"

    def judge(self, instruction: Instruction, first: Audio, second: Audio) -> Reply:
        """Ask at temperature 0.

        A reply that the endpoint's filter withholds is kept as an unreadable one.

        Raises:
            JudgeError: without a key, and when the request fails for good.
            AudioError: when a recording cannot be read.
        """
        segments = self.presentation.segments(instruction, first, second)
        rate = self.presentation.sampling_rate
        parts: list[Any] = [
            {"type": "text", "text": segment}
            if isinstance(segment, str)
            else {
                "type": "input_audio",
                "input_audio": {
                    "data": base64.b64encode(wav(segment, rate)).decode(),
                    "format": "wav",
                },
            }
            for segment in segments
        ]
        text = self._ask(parts)
        return Reply(
            text=text,
            winners=self.presentation.rubric.read(text),
            prompt_sha256=self.presentation.prompt_sha256(instruction, first, second),
        )

    def _ask(self, parts: list[Any]) -> str:
        try:
            reply = self._client.chat.completions.create(
                model=self.model,
                messages=[{"role": "user", "content": parts}],
                temperature=0,
            )
        except openai.APIStatusError as error:
            if error.code in _FILTERED:
                return f"[{error.code}] {self._without_key(error.message)}"
            raise JudgeError(self._explain(error)) from None
        except (openai.OpenAIError, ValueError) as error:
            raise JudgeError(self._explain(error)) from None
        # A proxy may say with status 200 that it failed, and then this is any JSON or text.
        try:
            return _text(reply)
        except (AttributeError, LookupError, TypeError):
            said = self._without_key(str(reply))[:_SHOWN]
            raise JudgeError(
                f"{self.model}: the endpoint sent no reply of a model: {said}"
            ) from None

    @cached_property
    def _client(self) -> OpenAI:
        return OpenAI(
            api_key=self._key,
            base_url=self._url,
            max_retries=self.retries,
            timeout=self.timeout,
        )

    @property
    def _gemini(self) -> bool:
        return self.base_url is None and self.model.startswith("gemini-")

    @property
    def _url(self) -> str | None:
        return GEMINI_URL if self._gemini else self.base_url

    @property
    def _key(self) -> str:
        variable = self.key_variable or (GEMINI_KEY if self._gemini else OPENAI_KEY)
        key = os.environ.get(variable, "")
        if not key and urlsplit(self._url or "").hostname in _LOOPBACK:
            return _NO_KEY
        if not key:
            raise JudgeError(
                f"{self.model} needs a key: set the environment variable {variable}, or name "
                "another one with --key-variable"
            )
        if not (key.isascii() and key.isprintable()):
            raise JudgeError(
                f"the key in the environment variable {variable} has characters that no key has; "
                "copy it anew"
            )
        return key

    def _explain(self, error: Exception) -> str:
        return f"{self.model} cannot be asked: {type(error).__name__}: " + self._without_key(
            str(error)
        )

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "…")


def _text(reply: Any) -> str:
    """Return the text of a reply; several parts are joined, and those without text left out.

    Raises:
        AttributeError, LookupError, TypeError: when it is none.
    """
    if not isinstance(reply.choices, list):
        raise TypeError("no list of choices")
    message = reply.choices[0].message if reply.choices else None
    if message is None:
        return ""
    content = message.content
    if isinstance(content, list):
        content = "".join(part["text"] for part in content if part.get("type") == "text")
    text = content or getattr(message, "refusal", None) or ""
    if not isinstance(text, str):
        raise TypeError("content that is no text")
    return text
