"""The HTTP server that plays a script."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar
from urllib.parse import urlsplit

from . import protocols
from .script import ZERO, Failure, Turn

_SIDE_TURN = Turn(text="ok", usage=ZERO)
_OVERRUN = Failure(status=400, message="the script has no turn left")
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    in_conversation: bool
    turn: int | None = None
    """Which turn of the script answered it."""


@dataclass
class ScriptedEndpoint:
    """Plays a script to whoever asks, once; a request after the last turn gets an error and is counted as overrun.

    Attributes:
        turns: the script.
        repeat_last: play the last turn again and again instead of running out, for an endpoint that stays down.
        side_turn: the answer to requests beside the conversation.
        key: when given, requests without it are refused with 401.
    """

    turns: Sequence[Turn]
    host: str = "127.0.0.1"
    repeat_last: bool = False
    side_turn: Turn = _SIDE_TURN
    key: str | None = None
    requests: list[ReceivedRequest] = field(default_factory=list)
    n_overruns: int = 0
    _next: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._closing = threading.Event()
        handler = type("Handler", (_Handler,), {"endpoint": self})
        self._server = _Server((self.host, 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> ScriptedEndpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def anthropic_url(self) -> str:
        """What `ANTHROPIC_BASE_URL` wants."""
        return f"http://{self.host}:{self.port}"

    @property
    def openai_url(self) -> str:
        """What `OPENAI_BASE_URL` wants."""
        return f"{self.anthropic_url}/v1"

    @property
    def n_turns_left(self) -> int:
        """How many turns nobody has asked for."""
        return len(self.turns) - self._next

    @property
    def conversation(self) -> list[ReceivedRequest]:
        """The requests that belong to the agent's conversation."""
        return [request for request in self.requests if request.in_conversation]

    def wait(self, seconds: float) -> None:
        """Sleep, but not past the end of the endpoint."""
        self._closing.wait(seconds)

    def take(self, method: str, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> tuple[Turn, int]:
        """Record a request and choose its turn and number."""
        with self._lock:
            in_conversation = protocols.is_conversation(path, body)
            turn, index = self._choose(in_conversation, headers)
            self.requests.append(ReceivedRequest(method, path, headers, body, in_conversation, index))
            return turn, len(self.requests)

    def _choose(self, in_conversation: bool, headers: Mapping[str, str]) -> tuple[Turn, int | None]:
        if self.key is not None and self.key not in (headers.get("x-api-key", ""), _bearer(headers)):
            return Turn(failure=Failure(401, "invalid key")), None
        if not in_conversation:
            return self.side_turn, None
        if self._next < len(self.turns):
            self._next += 1
            return self.turns[self._next - 1], self._next - 1
        if self.repeat_last and self.turns:
            return self.turns[-1], len(self.turns) - 1
        self.n_overruns += 1
        return Turn(failure=_OVERRUN), None


def _bearer(headers: Mapping[str, str]) -> str:
    return headers.get("authorization", "").removeprefix("Bearer ")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of an agent that went away, which some tests bring about on purpose."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: ClassVar[ScriptedEndpoint]

    def do_HEAD(self) -> None:
        self._send(200, {})

    def do_GET(self) -> None:
        if self.headers.get("upgrade", "").lower() == "websocket":
            # Codex takes this answer, and no other, as the order to speak plain HTTP without trying again.
            self._send(426, {"error": {"type": "invalid_request_error", "message": "no web sockets here"}})
            return
        self._send(404, {"error": {"type": "not_found_error", "message": "only model calls are served"}})

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        body = self._read_body()
        if path.endswith("/count_tokens"):
            self._send(200, {"input_tokens": 1})
        elif path.endswith(("/responses", "/messages")):
            headers = {key.lower(): value for key, value in self.headers.items()}
            turn, number = self.endpoint.take("POST", path, headers, body)
            self.endpoint.wait(turn.delay_sec)
            self._answer(path, turn, number, body)
        else:
            self._send(404, {"error": {"type": "not_found_error", "message": f"no {path} here"}})

    def log_message(self, format: str, *arguments: Any) -> None:
        """Stay quiet: the requests are recorded."""

    def _read_body(self) -> dict[str, Any]:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(data)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}

    def _answer(self, path: str, turn: Turn, number: int, body: dict[str, Any]) -> None:
        failure = turn.failure
        if failure is not None and not failure.cut_stream:
            self._send_failure(failure)
        elif path.endswith("/responses"):
            self._stream(protocols.responses_events(turn, number, body), failure)
        elif body.get("stream"):
            self._stream(protocols.messages_events(turn, number, body), failure)
        else:
            self._send(200, protocols.messages_body(turn, number, body))

    def _send_failure(self, failure: Failure) -> None:
        kind = _ERROR_TYPES.get(failure.status, "api_error")
        headers = {} if failure.retry_after_sec is None else {"retry-after": str(failure.retry_after_sec)}
        self._send(failure.status, {"type": "error", "error": {"type": kind, "message": failure.message}}, headers)

    def _send(self, status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _stream(self, events: list[protocols.Event], failure: Failure | None) -> None:
        """Send the events in chunks; a cut stream ends after the first of them without its closing chunk."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.close_connection = failure is not None
        for event in events[:1] if failure else events:
            data = protocols.encode(event)
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()
        if failure is None:
            self.wfile.write(b"0\r\n\r\n")
