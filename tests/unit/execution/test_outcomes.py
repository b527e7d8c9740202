import pytest
from harbor.models.trial.error_policy import ERROR_POLICIES

from orbit.execution import outcomes
from orbit.execution.outcomes import Disposition, Ending, classify, dispose
from orbit.verification.verdict import FailureMode

TABLE = [
    # exception, message, retries left, artifact left, expected
    (None, "", 1, True, Disposition.JUDGE),
    (None, "", 1, False, Disposition.FAILED_TRIAL),
    ("AgentTimeoutError", "timed out", 1, True, Disposition.JUDGE),
    ("AgentTimeoutError", "timed out", 1, False, Disposition.FAILED_TRIAL),
    ("NonZeroAgentExitCodeError", "exit 3", 1, True, Disposition.JUDGE),
    ("NonZeroAgentExitCodeError", "exit 3", 1, False, Disposition.FAILED_TRIAL),
    ("SandboxLikelyOutOfMemoryError", "killed", 1, True, Disposition.JUDGE),
    ("SandboxLikelyOutOfMemoryError", "killed", 1, False, Disposition.FAILED_TRIAL),
    ("AgentSafetyRefusalError", "no", 1, False, Disposition.FAILED_TRIAL),
    ("AgentSafetyRefusalError", "no", 1, True, Disposition.JUDGE),
    ("ContextWindowExceededError", "too long", 1, True, Disposition.JUDGE),
    ("ContextWindowExceededError", "too long", 1, False, Disposition.FAILED_TRIAL),
    ("AgentSetupTimeoutError", "slow", 1, False, Disposition.RETRY),
    ("AgentSetupTimeoutError", "slow", 0, True, Disposition.HARNESS_ERROR),
    ("ApiRateLimitError", "429", 1, False, Disposition.RETRY),
    ("ApiRateLimitError", "429", 0, False, Disposition.HARNESS_ERROR),
    ("ApiConnectionError", "refused", 2, True, Disposition.RETRY),
    ("ApiConnectionError", "refused", 0, True, Disposition.HARNESS_ERROR),
    ("AgentAuthenticationError", "401", 1, False, Disposition.HARNESS_ERROR),
    ("EnvironmentStartTimeoutError", "slow", 1, False, Disposition.RETRY),
    ("RuntimeError", "Cannot connect to the Docker daemon at unix", 1, False, Disposition.RETRY),
    ("RuntimeError", "Cannot connect to the Docker daemon at unix", 0, True, Disposition.HARNESS_ERROR),
    ("OSError", "[Errno 28] No space left on device: 'x'", 1, True, Disposition.HARNESS_ERROR),
    ("HarnessError", "sandbox did not start", 1, True, Disposition.HARNESS_ERROR),
    ("VerifierTimeoutError", "", 1, True, Disposition.HARNESS_ERROR),
    ("CancelledError", "", 1, True, Disposition.HARNESS_ERROR),
    ("SomethingNobodyHasSeen", "", 1, True, Disposition.HARNESS_ERROR),
]


@pytest.mark.parametrize(("exception", "message", "retries_left", "has_artifact", "expected"), TABLE)
def test_table(exception, message, retries_left, has_artifact, expected):
    ending = classify(exception, message)
    assert dispose(ending, has_artifact=has_artifact, retries_left=retries_left) is expected


def test_no_ending_is_missing_from_the_table():
    assert {classify(exception, message) for exception, message, *_ in TABLE} == set(Ending)


def test_every_ending_has_a_rule():
    assert set(outcomes.RULES) == set(Ending)


@pytest.mark.parametrize(
    ("exception", "message", "told"),
    [
        ("RuntimeError", "copying failed: the container engine went away during `compose cp`", "EngineGoneError"),
        ("HarnessError", "Cannot connect to the Docker daemon at unix", "EngineGoneError"),
        ("EnvironmentStartTimeoutError", "[Errno 28] No space left on device", "DiskFullError"),
        ("AgentTimeoutError", "Cannot connect to the Docker daemon", "AgentTimeoutError"),
        ("RuntimeError", "something else", "RuntimeError"),
    ],
)
def test_harbor_is_told_the_type_that_decides_on_a_retry(exception, message, told):
    found = outcomes.telling_type(exception, message)
    assert found == told
    retried = outcomes.RULES[classify(exception, message)].retry
    assert (found in outcomes.retryable_exceptions()) == retried


@pytest.mark.parametrize(
    ("ending", "mode"),
    [
        (Ending.COMPLETED, FailureMode.AGENT_NO_ARTIFACT),
        (Ending.AGENT_TIMEOUT, FailureMode.AGENT_NO_ARTIFACT),
        (Ending.MEMORY, FailureMode.RESOURCE_TIMEOUT_OOM),
        (Ending.REFUSAL, FailureMode.SAFETY_REFUSAL),
    ],
)
def test_failure_mode_without_artifact(ending, mode):
    assert outcomes.failure_mode_without_artifact(ending) is mode


def test_the_agents_own_message_cannot_make_its_failure_an_error_of_ours():
    assert classify("NonZeroAgentExitCodeError", "No space left on device") is Ending.AGENT_EXIT


def test_a_harness_error_never_counts_as_valid_in_harbor():
    for name, override in outcomes.policy_overrides().items():
        assert override["has_valid_reward"] == (outcomes.RULES[outcomes.EXCEPTIONS[name]].with_artifact == "judge")


def test_memory_is_graded_here_although_harbor_would_retry_it():
    assert ERROR_POLICIES["SandboxLikelyOutOfMemoryError"].should_grade is False
    assert outcomes.policy_overrides()["SandboxLikelyOutOfMemoryError"]["should_grade"] is True


def test_every_exception_that_harbor_would_retry_is_classified():
    retried = {name for name, policy in ERROR_POLICIES.items() if policy.should_retry}
    unclassified = retried - set(outcomes.EXCEPTIONS)
    assert unclassified <= {"SSHAccessError", "GKEExecStreamClosedError", "GKEPodNotFoundError"}
