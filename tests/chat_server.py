"""The network end of a judge: a small server that speaks OpenAI's chat protocol."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import soundfile

Answer = tuple[int, dict[str, Any], dict[str, str]]
"""Status, body and headers."""


@dataclass
class ChatServer:
    """What was asked, and what is to be answered."""

    reply: Callable[[dict[str, Any]], Answer]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


def said(text: str | None) -> Answer:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "ears"}
    return 200, {**body, "choices": [choice]}, {}


def verdict(winner: str) -> str:
    criteria = ("instruction", "expression", "quality", "overall")
    return "The reasons.\n```json\n" + json.dumps(dict.fromkeys(criteria, winner)) + "\n```"


def parts(request: dict[str, Any]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = request["messages"][0]["content"]
    return content


def heard(request: dict[str, Any]) -> list[tuple[np.ndarray[Any, Any], int]]:
    """Decode the recordings of a request."""
    found = []
    for part in parts(request):
        if part["type"] == "input_audio":
            assert part["input_audio"]["format"] == "wav"
            data = base64.b64decode(part["input_audio"]["data"])
            found.append(soundfile.read(io.BytesIO(data), dtype="float32"))
    return found


def likes_pitch(request: dict[str, Any]) -> Answer:
    """Prefer the answer with the higher pitch; silence has the lowest, noise counts as silence."""
    (_, _), (first, rate), (second, _) = heard(request)
    better = "first" if tone(first, rate) >= tone(second, rate) else "second"
    return said(verdict(better))


def tone(signal: np.ndarray[Any, Any], rate: int) -> float:
    """Return the frequency in which most of the power is, in Hz; 0 for no tone."""
    power = np.abs(np.fft.rfft(signal)) ** 2
    top = int(power.argmax())
    near = power[max(0, top - 20) : top + 21].sum()
    return top * rate / len(signal) if near > power.sum() / 2 else 0.0


@contextmanager
def serving(reply: Callable[[dict[str, Any]], Answer]) -> Iterator[ChatServer]:
    """Serve on a free port meanwhile."""
    state = ChatServer(reply)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions"
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(request)
            state.keys.append(self.headers.get("Authorization"))
            status, body, headers = state.reply(request)
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:  # clients that are killed
            pass

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
