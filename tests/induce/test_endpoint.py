from __future__ import annotations

import json
from typing import Any

import pytest

from nser.induce.cassette import Call
from nser.induce.endpoint import CANARY, ChatEndpoint, EndpointSettings
from nser.induce.model import (
    ModelError,
    NoAnswerError,
    QuotaError,
    RateLimitedError,
    RefusalError,
    RefusedCallError,
    TimedOutError,
    TooLongError,
    UnreachableError,
)
from tests.induce.fake_server import Answer, completion, failure, serve

CALL = Call("m", ({"role": "user", "content": "Write rules."},), {"max_tokens": 50, "temperature": 0.2})
RULE = "rule a: forall t in step: open(t) -> good(t)"


def endpoint(url: str, pauses: list[float] | None = None, **settings: Any) -> ChatEndpoint:
    given = EndpointSettings(**{"timeout": 5.0, "retries": 2, **settings})
    return ChatEndpoint("m", url, given, pause=(pauses if pauses is not None else []).append)


def test_an_answer_comes_with_its_tokens() -> None:
    with serve([completion(RULE)]) as server:
        reply = endpoint(server.url).complete(CALL)
    assert (reply.text, reply.finish_reason, reply.prompt_tokens, reply.completion_tokens) == (RULE, "stop", 11, 7)
    assert server.requests[0]["messages"] == [{"role": "user", "content": "Write rules."}]
    assert server.requests[0]["temperature"] == 0.2


def test_the_key_goes_to_the_server_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with serve([completion(RULE)]) as server:
        model = endpoint(server.url)
        model.complete(CALL)
    assert server.authorizations == ["Bearer sk-secret"]
    assert "secret" not in model.name
    assert "secret" not in CALL.key


def test_openai_without_a_key_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(RefusedCallError, match="found no OPENAI_API_KEY"):
        ChatEndpoint("gpt-x")


FAILURES: list[tuple[str, Answer, type[ModelError], int]] = [
    ("quota", failure(429, "insufficient_quota", "You exceeded your current quota"), QuotaError, 1),
    ("rate", failure(429, "rate_limit_exceeded", retry_after="0"), RateLimitedError, 3),
    ("server", failure(503), UnreachableError, 3),
    ("too long", failure(400, "context_length_exceeded", "maximum context length is 4096 tokens"), TooLongError, 1),
    (
        "too long for llama.cpp",
        failure(400, "400", "exceeds the available context size (4096 tokens)"),
        TooLongError,
        1,
    ),
    ("key", failure(401, "invalid_api_key", "Incorrect API key"), RefusedCallError, 1),
    ("model", failure(404, "model_not_found", "no such model"), RefusedCallError, 1),
    (
        "no choices",
        Answer(body='{"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": []}'),
        NoAnswerError,
        1,
    ),
    ("null choices", Answer(body='{"choices": null}'), NoAnswerError, 1),
    ("empty", completion(""), NoAnswerError, 1),
    ("none", completion(None), NoAnswerError, 1),
    ("refusal", completion(None, refusal="I can't help with that."), RefusalError, 1),
    ("filter", completion("x", "content_filter"), RefusalError, 1),
    ("html", Answer(body="<html><body>Welcome</body></html>", kind="text/html"), NoAnswerError, 1),
    ("cut json", Answer(body='{"id": "1", "choices": [{"index": 0, "mess'), NoAnswerError, 1),
]


@pytest.mark.parametrize(("answer", "kind", "calls"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES])
def test_every_failure_has_its_own_outcome(answer: Answer, kind: type[ModelError], calls: int) -> None:
    with serve([answer]) as server, pytest.raises(kind) as caught:
        endpoint(server.url).complete(CALL)
    assert type(caught.value) is kind
    assert len(server.requests) == calls
    assert "\n" not in str(caught.value)


def test_outcomes_are_distinct_words() -> None:
    kinds = {kind for _, _, kind, _ in FAILURES} | {TimedOutError}
    assert len({kind.outcome for kind in kinds}) == len(kinds)


def test_a_time_out_is_bounded() -> None:
    with serve([Answer(wait=1.0)]) as server, pytest.raises(TimedOutError, match=r"no answer in 0\.05 s"):
        endpoint(server.url, timeout=0.05, retries=0).complete(CALL)


def test_nobody_there() -> None:
    with serve([completion(RULE)]) as server:
        url = server.url
    with pytest.raises(UnreachableError, match="nobody answers"):
        endpoint(url, retries=0).complete(CALL)


def test_retry_after_is_honoured_up_to_a_cap() -> None:
    pauses: list[float] = []
    with serve([failure(429, retry_after="7"), completion(RULE)]) as server:
        assert endpoint(server.url, pauses).complete(CALL).text == RULE
    assert pauses == [7.0]
    with serve([failure(429, retry_after="3600"), completion(RULE)]) as server, pytest.raises(RateLimitedError):
        endpoint(server.url, pauses).complete(CALL)
    assert len(server.requests) == 1
    assert pauses == [7.0]


def test_without_retry_after_pauses_grow() -> None:
    pauses: list[float] = []
    with serve([failure(500), failure(429, retry_after="Wed, 21 Oct"), completion(RULE)]) as server:
        endpoint(server.url, pauses).complete(CALL)
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_text_in_the_field_for_thoughts_is_found(field: str) -> None:
    with serve([completion("", **{field: RULE})]) as server:
        assert endpoint(server.url).complete(CALL).text == RULE


GRAMMAR = 'start: "rule a"\n'
ASKED = Call("m", CALL.messages, CALL.sampling, GRAMMAR)


def obeys(way: str) -> Any:
    """A server that enforces a grammar only where it is sent in this field."""

    def answer(request: dict[str, Any]) -> Answer:
        sent = {
            "structured-outputs": (request.get("structured_outputs") or {}).get("grammar"),
            "llguidance": request.get("grammar"),
        }
        grammar = sent.get(way)
        if grammar and CANARY in grammar:
            return completion(CANARY)
        return completion("rule a" if grammar else "Hello! How can I help?")

    return answer


@pytest.mark.parametrize("way", ["structured-outputs", "llguidance"])
def test_a_canary_finds_the_way_that_the_server_enforces(way: str) -> None:
    with serve(obeys(way)) as server:
        model = endpoint(server.url)
        assert model.complete(ASKED).text == "rule a"
        calls = len(server.requests)
        model.complete(ASKED)
        assert len(server.requests) == calls + 1, "the canary sings once"
    assert model.enforced is True


def test_a_server_that_drops_every_grammar_is_asked_without_one() -> None:
    with serve(obeys("none")) as server:
        model = endpoint(server.url)
        assert model.complete(ASKED).text.startswith("Hello")
    assert model.enforced is False
    assert "grammar" not in json.dumps(server.requests[-1])


def test_a_server_that_refuses_the_field_is_asked_without_it() -> None:
    def answer(request: dict[str, Any]) -> Answer:
        if "structured_outputs" in request or "grammar" in request:
            return failure(400, "unknown_field", "unknown field")
        return completion(RULE)

    with serve(answer) as server:
        assert endpoint(server.url).complete(ASKED).text == RULE


def test_openai_gets_the_grammar_as_a_custom_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "write_rules", "input": RULE}}
    with serve([completion(None, "tool_calls", tool_calls=[call])]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        model = ChatEndpoint("gpt-x", settings=EndpointSettings(constraint="lark-tool", retries=0))
        assert model.complete(ASKED).text == RULE
    tool = server.requests[0]["tools"][0]["custom"]
    assert tool["format"] == {"type": "grammar", "grammar": {"syntax": "lark", "definition": GRAMMAR}}
