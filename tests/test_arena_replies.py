"""What a judge's endpoint may send in place of a verdict, and addresses and keys that are wrong."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from arena_sounds import asked, put, tone

from s2s_tasks.arena.judges.contract import JudgeError, Reply
from s2s_tasks.arena.judges.openai_chat import OpenAIChatJudge
from s2s_tasks.arena.judges.presenting import Presentation
from s2s_tasks.arena.judges.prompt import Rubric
from s2s_tasks.arena.records import CRITERIA

VERDICT = json.dumps(dict.fromkeys(CRITERIA, "first"))


@contextmanager
def sending(body: str, kind: str = "application/json") -> Iterator[str]:
    """Serve an endpoint that answers whatever is asked with one body."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def message(content: object) -> str:
    return json.dumps({"choices": [{"index": 0, "message": {"content": content}}]})


def judged(folder: Path, url: str | None, **options: str) -> Reply:
    judge = OpenAIChatJudge("ears", Presentation(Rubric()), base_url=url, retries=0, **options)  # type: ignore[arg-type]
    low = put(folder, "low", tone(200, 0.5))
    return judge.judge(asked(folder), low, low)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('{"error": {"code": 429, "message": "slow down"}}', "application/json"),
        ("<html>bad gateway</html>", "text/html"),
        ("<html>bad gateway</html>", "application/json"),
        ('{"choices": [', "application/json"),
        ("", "application/json"),
        ("null", "application/json"),
        ("[]", "application/json"),
        ('"text"', "application/json"),
        ('{"choices": "none"}', "application/json"),
        ('{"choices": ["text"]}', "application/json"),
        ('{"choices": [null]}', "application/json"),
        (message({"text": "…"}), "application/json"),
        (message(3), "application/json"),
        (message(["text"]), "application/json"),
        (message([{"type": "text"}]), "application/json"),
    ],
)
def test_what_is_no_reply_is_asked_again_later(tmp_path: Path, body: str, kind: str) -> None:
    with sending(body, kind) as url, pytest.raises(JudgeError, match=r"^ears"):
        judged(tmp_path, url)


def test_parts_of_text_are_a_reply(tmp_path: Path) -> None:
    half = len(VERDICT) // 2
    parts = [
        {"type": "text", "text": VERDICT[:half]},
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "text", "text": VERDICT[half:]},
    ]
    with sending(message(parts)) as url:
        reply = judged(tmp_path, url)
    assert reply.text == VERDICT
    assert reply.winners == dict.fromkeys(CRITERIA, "first")


def test_no_message_is_an_empty_reply(tmp_path: Path) -> None:
    for body in (
        '{"choices": [{"index": 0}]}',
        '{"choices": [{"message": {"role": "assistant"}}]}',
    ):
        with sending(body) as url:
            assert judged(tmp_path, url).text == ""


@pytest.mark.parametrize("url", ["http://[::1", "", "localhost:8000", "//host", "ftp://host", "x"])
def test_an_address_that_is_none(tmp_path: Path, url: str) -> None:
    with pytest.raises(JudgeError, match="is no URL of an endpoint, as http://host:8000/v1"):
        judged(tmp_path, url)


@pytest.mark.parametrize("key", ["sk-é", "sk-1\n", "“sk-1”"])
def test_a_key_that_is_none(tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EARS_KEY", key)
    with pytest.raises(JudgeError, match="variable EARS_KEY has characters that no key") as caught:
        judged(tmp_path, None, key_variable="EARS_KEY")
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("reply", ['{"a":' * 100_000 + VERDICT, "{" * 500_000, '{"a":[' * 100_000])
def test_a_reply_of_braces_is_soon_given_up(reply: str) -> None:
    start = time.perf_counter()
    assert Rubric().read(reply) == {}
    assert time.perf_counter() - start < 20  # of minutes that every brace would take


def test_some_braces_do_no_harm() -> None:
    assert Rubric().read("{so} " * 500 + VERDICT)
