"""A server on 127.0.0.1 that answers chat completions as a test tells it to, in real HTTP."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One HTTP answer; `wait` seconds before it is sent."""

    status: int = 200
    body: str = ""
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0


def completion(text: str | None, reason: str = "stop", **message: Any) -> Answer:
    """A chat completion with this text."""
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text, **message}}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    return Answer(body=json.dumps(body))


def failure(status: int, code: str | None = None, message: str = "no", **headers: str) -> Answer:
    """An error as OpenAI words it."""
    body = json.dumps({"error": {"message": message, "type": "x", "code": code, "param": None}})
    return Answer(status, body, headers={key.replace("_", "-"): value for key, value in headers.items()})


@dataclass
class FakeServer:
    """Where it listens, and every request that came, as JSON."""

    url: str
    requests: list[dict[str, Any]]
    authorizations: list[str]


@contextmanager
def serve(answers: Sequence[Answer] | Callable[[dict[str, Any]], Answer]) -> Iterator[FakeServer]:
    """Answer request after request from the list (the last one for ever), or by a function of the request."""
    seen: list[dict[str, Any]] = []
    keys: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append(request)
            keys.append(self.headers.get("Authorization", ""))
            answer = answers(request) if callable(answers) else answers[min(len(seen), len(answers)) - 1]
            time.sleep(answer.wait)
            content = answer.body.encode()
            try:
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.kind)
                self.send_header("Content-Length", str(len(content)))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client did not wait

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield FakeServer(f"http://127.0.0.1:{server.server_address[1]}/v1", seen, keys)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
