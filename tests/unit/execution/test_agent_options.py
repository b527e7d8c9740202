import pytest

from orbit.errors import UsageError
from orbit.execution.agent_options import parse_agent_options, refuse_secrets


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("30", 30),
        ("0.5", 0.5),
        ("1_000", 1000),
        ("true", True),
        ("null", None),
        ('"30"', "30"),
        ("'30'", "30"),
        ("live", "live"),
        ("", ""),
        ("a=b", "a=b"),
        ("NaN", "NaN"),
        ("inf", "inf"),
        ("2026-01-01", "2026-01-01"),
        ('["a", 1]', ["a", 1]),
        ('{"a": {"b": 1}}', {"a": {"b": 1}}),
        ("{a = 1}", {"a": 1}),
    ],
)
def test_values_have_types(text, value):
    parsed = parse_agent_options([f"some_option={text}"])["some_option"]
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("max_turns", "max_turns: not of the form KEY=VALUE"),
        ("=3", "KEY=VALUE"),
        ("two words=3", "KEY=VALUE"),
        ("version=1.2", "use --agent-version"),
        ("reasoning_effort=high", "use --effort"),
        ("base_url=https://example.org", "use --base-url"),
        ("api_key=sk-canary", "--key-variable"),
        ("apiKey=sk-canary", "--key-variable"),
        ("OPENAI_API_KEY=sk-canary", "--key-variable"),
        ("auth_token=sk-canary", "--key-variable"),
        ("client-secret=sk-canary", "--key-variable"),
        ('config={"provider": {"apikey": "sk-canary"}}', "config.provider.apikey"),
        ('extra_env={"GH_TOKEN": "sk-canary"}', "extra_env.GH_TOKEN"),
        ('headers=[{"Authorization": "sk-canary"}]', "headers.Authorization"),
    ],
)
def test_what_cannot_be_taken_is_one_line_without_the_value(line, message):
    with pytest.raises(UsageError) as caught:
        parse_agent_options([line])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_secret_without_its_equals_sign_is_not_repeated():
    with pytest.raises(UsageError) as caught:
        parse_agent_options(["sk canary"])
    assert "canary" not in str(caught.value)


def test_a_number_of_tokens_is_no_secret_and_neither_is_a_keyboard():
    options = {"max_tokens": 100, "keyboard": "us", "monkey": "yes", "tokenizer": "bpe"}
    assert parse_agent_options([f"{key}={value}" for key, value in options.items()]) == options


def test_an_option_is_given_once():
    with pytest.raises(UsageError, match="twice"):
        parse_agent_options(["max_turns=1", "max_turns=2"])


def test_the_value_of_a_key_variable_is_found_under_any_name(monkeypatch):
    monkeypatch.setenv("MY_KEY", "canary")
    refuse_secrets({"comment": "canary"})
    with pytest.raises(UsageError, match="comment"):
        refuse_secrets({"comment": "see canary"}, ["MY_KEY", "NOT_SET"])
