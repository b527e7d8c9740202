"""The scripted endpoint itself: what the end-to-end tests rest on."""

from __future__ import annotations

import http.client
import json
import time

import pytest

from tests.e2e.endpoint import Failure, ScriptedEndpoint, Turn, Usage, total_usage

RESPONSES = {"model": "gpt-5.5", "stream": True, "tools": [{"type": "function", "name": "exec_command"}]}
MESSAGES = {"model": "claude-sonnet-4-5", "stream": True, "tools": [{"name": "Bash"}]}
USAGE = Usage(input=1000, cached=200, cache_write=50, output=30, reasoning=5)


def post(endpoint, path, body, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"} | (headers or {}))
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, answer.headers, data


def events(data):
    chunks = [chunk for chunk in data.decode().split("\n\n") if chunk]
    parsed = []
    for chunk in chunks:
        name, _, payload = chunk.partition("\ndata: ")
        parsed.append((name.removeprefix("event: "), json.loads(payload)))
    return parsed


def test_responses_carry_tool_call_and_usage():
    with ScriptedEndpoint([Turn(text="Look.", command="ls", usage=USAGE)]) as endpoint:
        status, headers, data = post(endpoint, "/v1/responses", RESPONSES)
    assert status == 200
    assert headers["content-type"] == "text/event-stream"
    found = events(data)
    assert [name for name, _ in found if name.startswith("response.c")] == ["response.created", "response.completed"]
    completed = found[-1][1]["response"]
    message, call = completed["output"]
    assert message["content"] == [{"type": "output_text", "text": "Look."}]
    assert (call["name"], json.loads(call["arguments"])["cmd"]) == ("exec_command", "ls")
    assert completed["usage"]["input_tokens"] == 1250, "OpenAI counts cached tokens among the input"
    assert completed["usage"]["input_tokens_details"] == {"cached_tokens": 200, "cache_write_tokens": 50}
    assert completed["usage"]["total_tokens"] == 1280


def test_messages_carry_tool_call_and_usage():
    with ScriptedEndpoint([Turn(command="ls", usage=USAGE)]) as endpoint:
        status, _, data = post(endpoint, "/v1/messages?beta=true", MESSAGES)
    assert status == 200
    found = dict(events(data))
    assert found["message_start"]["message"]["usage"] == {
        "input_tokens": 1000,
        "cache_creation_input_tokens": 50,
        "cache_read_input_tokens": 200,
        "output_tokens": 1,
    }
    assert json.loads(found["content_block_delta"]["delta"]["partial_json"])["command"] == "ls"
    assert found["message_delta"] == {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 30},
    }


def test_turns_are_played_in_order_and_running_out_is_noticed():
    with ScriptedEndpoint([Turn(text="one"), Turn(text="two")]) as endpoint:
        body = MESSAGES | {"stream": False}
        texts = [json.loads(post(endpoint, "/v1/messages", body)[2])["content"][0]["text"] for _ in range(2)]
        assert texts == ["one", "two"]
        assert (endpoint.n_turns_left, endpoint.n_overruns) == (0, 0)
        assert post(endpoint, "/v1/messages", body)[0] == 400
        assert endpoint.n_overruns == 1
        assert [request.turn for request in endpoint.requests] == [0, 1, None]


def test_requests_beside_the_conversation_use_no_turn():
    with ScriptedEndpoint([Turn(text="the answer")]) as endpoint:
        aside = post(endpoint, "/v1/messages", {"model": "claude-haiku-4-5"})[2]
        assert json.loads(aside)["content"][0]["text"] == "ok"
        assert json.loads(aside)["usage"]["input_tokens"] == 0
        assert post(endpoint, "/v1/messages/count_tokens", MESSAGES)[0] == 200
        assert endpoint.n_turns_left == 1
        assert endpoint.conversation == []


@pytest.mark.parametrize(
    ("status", "kind"), [(500, "api_error"), (429, "rate_limit_error"), (401, "authentication_error")]
)
def test_failures_come_as_http_errors(status, kind):
    failure = Failure(status=status, message="not now", retry_after_sec=3)
    with ScriptedEndpoint([Turn(failure=failure), Turn(text="ok")]) as endpoint:
        got, headers, data = post(endpoint, "/v1/responses", RESPONSES)
        assert (got, headers["retry-after"]) == (status, "3")
        assert json.loads(data)["error"] == {"type": kind, "message": "not now"}
        assert post(endpoint, "/v1/responses", RESPONSES)[0] == 200


def test_a_cut_stream_does_not_complete():
    with (
        ScriptedEndpoint([Turn(text="half", failure=Failure(cut_stream=True))]) as endpoint,
        pytest.raises(http.client.IncompleteRead) as error,
    ):
        post(endpoint, "/v1/responses", RESPONSES)
    assert b"response.created" in error.value.partial
    assert b"response.completed" not in error.value.partial


def test_an_endpoint_that_stays_down_repeats_its_last_turn():
    with ScriptedEndpoint([Turn(failure=Failure(503))], repeat_last=True) as endpoint:
        assert [post(endpoint, "/v1/responses", RESPONSES)[0] for _ in range(3)] == [503] * 3
        assert endpoint.n_overruns == 0


def test_refusals_are_marked_as_each_protocol_marks_them():
    refusal = Turn(text="I cannot help with that.", refusal=True)
    with ScriptedEndpoint([refusal, refusal]) as endpoint:
        responses = events(post(endpoint, "/v1/responses", RESPONSES)[2])[-1][1]["response"]
        message = json.loads(post(endpoint, "/v1/messages", MESSAGES | {"stream": False})[2])
    assert responses["output"][0]["content"] == [{"type": "refusal", "refusal": "I cannot help with that."}]
    assert message["stop_reason"] == "refusal"


def test_a_key_is_asked_for():
    with ScriptedEndpoint([Turn(text="ok"), Turn(text="ok")], key="canary") as endpoint:
        assert post(endpoint, "/v1/responses", RESPONSES)[0] == 401
        assert post(endpoint, "/v1/responses", RESPONSES, {"Authorization": "Bearer canary"})[0] == 200
        assert post(endpoint, "/v1/messages", MESSAGES, {"x-api-key": "canary"})[0] == 200
        assert endpoint.n_turns_left == 0


def test_a_delay_holds_the_answer_back_but_not_the_end_of_the_endpoint():
    began = time.monotonic()
    with ScriptedEndpoint([Turn(text="late", delay_sec=0.2), Turn(text="never", delay_sec=600)]) as endpoint:
        post(endpoint, "/v1/responses", RESPONSES)
        assert time.monotonic() - began >= 0.2
        connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
        connection.request("POST", "/v1/responses", json.dumps(RESPONSES))
    assert time.monotonic() - began < 60
    connection.close()


def test_an_upgrade_to_a_web_socket_is_turned_down_so_that_codex_speaks_http():
    with ScriptedEndpoint([]) as endpoint:
        connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
        connection.request("GET", "/v1/responses", headers={"Upgrade": "websocket", "Connection": "Upgrade"})
        assert connection.getresponse().status == 426
        connection.close()


def test_the_total_leaves_out_failed_turns():
    turns = [Turn(usage=USAGE), Turn(usage=USAGE, failure=Failure()), Turn(usage=Usage(input=1, output=2))]
    assert total_usage(turns) == Usage(input=1001, cached=200, cache_write=50, output=32, reasoning=5)
