"""How a trial can end, and what follows: one table and two pure functions.

harbor has a table of its own (`harbor.models.trial.error_policy`) with other answers: it counts errors it does not know
as valid, and grades a trial whose endpoint was down. `policy_overrides` and `retryable_exceptions` bend it to ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orbit.verification.verdict import FailureMode


class Disposition(StrEnum):
    """What is done with a trial that ended."""

    RETRY = "retry"
    JUDGE = "judge"
    FAILED_TRIAL = "failed_trial"
    HARNESS_ERROR = "harness_error"


class Ending(StrEnum):
    """Why the solving of a trial ended, or what stopped it."""

    COMPLETED = "completed"
    AGENT_TIMEOUT = "agent_timeout"
    AGENT_EXIT = "agent_exit"
    MEMORY = "memory"
    CONTEXT_EXHAUSTED = "context_exhausted"
    REFUSAL = "refusal"
    RATE_LIMIT = "rate_limit"
    ENDPOINT_DOWN = "endpoint_down"
    MODEL_ACCESS = "model_access"
    AGENT_SETUP = "agent_setup"
    ENVIRONMENT_START = "environment_start"
    ENGINE_GONE = "engine_gone"
    DISK_FULL = "disk_full"
    VERIFICATION = "verification"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Rule:
    """One row of the table.

    Attributes:
        retry: try again first, as long as retries are left.
        with_artifact: what to do with an artifact that was left behind.
        without_artifact: what to conclude if there is none.
        failure_mode: of a failed trial without artifact.
    """

    retry: bool
    with_artifact: Disposition
    without_artifact: Disposition
    failure_mode: FailureMode | None = None


def _of_the_agent(failure_mode: FailureMode = FailureMode.AGENT_NO_ARTIFACT) -> Rule:
    """The agent's own doing: an artifact is judged, none is a failed trial."""
    return Rule(False, Disposition.JUDGE, Disposition.FAILED_TRIAL, failure_mode)


def _of_the_harness(*, retry: bool) -> Rule:
    """Nobody's failure: an artifact of such a trial says nothing about the agent."""
    return Rule(retry, Disposition.HARNESS_ERROR, Disposition.HARNESS_ERROR)


RULES: dict[Ending, Rule] = {
    Ending.COMPLETED: _of_the_agent(),
    Ending.AGENT_TIMEOUT: _of_the_agent(),
    Ending.AGENT_EXIT: _of_the_agent(),
    Ending.MEMORY: _of_the_agent(FailureMode.RESOURCE_TIMEOUT_OOM),
    Ending.CONTEXT_EXHAUSTED: _of_the_agent(),
    Ending.REFUSAL: _of_the_agent(FailureMode.SAFETY_REFUSAL),
    Ending.RATE_LIMIT: _of_the_harness(retry=True),
    Ending.ENDPOINT_DOWN: _of_the_harness(retry=True),
    Ending.MODEL_ACCESS: _of_the_harness(retry=False),
    Ending.AGENT_SETUP: _of_the_harness(retry=True),
    Ending.ENVIRONMENT_START: _of_the_harness(retry=True),
    Ending.ENGINE_GONE: _of_the_harness(retry=True),
    Ending.DISK_FULL: _of_the_harness(retry=False),
    Ending.VERIFICATION: _of_the_harness(retry=False),
    Ending.INTERRUPTED: _of_the_harness(retry=False),
    Ending.UNKNOWN: _of_the_harness(retry=False),
}
"""Every ending. A harness error that is not retried at once is repeated when the run is resumed."""

EXCEPTIONS: dict[str, Ending] = {
    name: ending
    for ending, names in {
        Ending.AGENT_TIMEOUT: ("AgentTimeoutError",),
        Ending.AGENT_EXIT: ("NonZeroAgentExitCodeError",),
        Ending.MEMORY: ("AgentOutOfMemoryError", "SandboxLikelyOutOfMemoryError", "MemoryLimitExceededError"),
        Ending.CONTEXT_EXHAUSTED: (
            "ContextWindowExceededError",
            "OutputTokenExceededError",
            "ContextLengthExceededError",
            "OutputLengthExceededError",
        ),
        Ending.REFUSAL: ("AgentSafetyRefusalError", "ContentPolicyViolationError"),
        Ending.RATE_LIMIT: ("ApiRateLimitError", "ApiUsageLimitError", "RateLimitError"),
        Ending.ENDPOINT_DOWN: (
            "ApiError",
            "ApiInternalServerError",
            "ApiOverloadedError",
            "ApiConnectionClosedError",
            "ApiResponseStalledError",
            "UnknownApiError",
            "NetworkConnectionError",
            "ApiConnectionError",
            "InternalServerError",
            "ServiceUnavailableError",
            "APIConnectionError",
            "APIError",
            "Timeout",
        ),
        Ending.MODEL_ACCESS: (
            "AgentAuthenticationError",
            "ModelNotFoundError",
            "ApiProviderResourceNotFoundError",
            "AuthenticationError",
            "PermissionDeniedError",
            "NotFoundError",
            "MissingModelCredentialError",
            "UnsupportedModelParametersError",
            "BadRequestError",
            "UnprocessableEntityError",
            "UnsupportedParamsError",
            "BudgetExceededError",
        ),
        Ending.AGENT_SETUP: ("AgentSetupTimeoutError",),
        Ending.ENVIRONMENT_START: (
            "EnvironmentStartTimeoutError",
            "SandboxBuildFailedError",
            "HealthcheckError",
            "RuntimeRequestError",
        ),
        Ending.ENGINE_GONE: ("EngineGoneError",),
        Ending.DISK_FULL: ("DiskFullError",),
        Ending.VERIFICATION: (
            "HarnessError",
            "VerifierTimeoutError",
            "RewardFileNotFoundError",
            "RewardFileEmptyError",
            "VerifierOutputParseError",
            "AddTestsDirError",
            "DownloadVerifierDirError",
        ),
        Ending.INTERRUPTED: ("CancelledError", "KeyboardInterrupt"),
    }.items()
    for name in names
}
"""Exception type, as harbor records it, to ending."""

_ENGINE_GONE = ("Cannot connect to the Docker daemon", "error during connect", "the container engine went away")
_DISK_FULL = ("No space left on device", "[Errno 28]", "Disk quota exceeded")


def classify(exception_type: str | None, message: str = "") -> Ending:
    """Why a trial ended, from the exception that harbor recorded (None: it ended by itself).

    A full disk and a vanished engine have no exception type of their own and hide in others, so their messages are
    looked for first, except where the type already says that the agent ended by its own doing.
    """
    if exception_type is None:
        return Ending.COMPLETED
    known = EXCEPTIONS.get(exception_type, Ending.UNKNOWN)
    if known is not Ending.UNKNOWN and RULES[known].with_artifact is Disposition.JUDGE:
        return known
    if any(mark in message for mark in _DISK_FULL):
        return Ending.DISK_FULL
    if any(mark in message for mark in _ENGINE_GONE):
        return Ending.ENGINE_GONE
    return known


def telling_type(exception_type: str, message: str) -> str:
    """The exception type by which harbor, which looks at nothing else, retries as the table says.

    Neither a vanished engine nor a full disk may hide in another type: one is worth trying again, the other is not.
    """
    names = {Ending.ENGINE_GONE: "EngineGoneError", Ending.DISK_FULL: "DiskFullError"}
    return names.get(classify(exception_type, message), exception_type)


def dispose(ending: Ending, *, has_artifact: bool, retries_left: int = 0) -> Disposition:
    """What follows from an ending."""
    rule = RULES[ending]
    if rule.retry and retries_left > 0:
        return Disposition.RETRY
    return rule.with_artifact if has_artifact else rule.without_artifact


def failure_mode_without_artifact(ending: Ending) -> FailureMode:
    """The failure mode of a failed trial that left no artifact."""
    return RULES[ending].failure_mode or FailureMode.AGENT_NO_ARTIFACT


def retryable_exceptions() -> set[str]:
    """Exception types that harbor retries within a job."""
    return {name for name, ending in EXCEPTIONS.items() if RULES[ending].retry}


def policy_overrides() -> dict[str, dict[str, bool]]:
    """Harbor's `override_error_policy` that makes its table agree with ours, by exception type."""
    overrides = {}
    for name, ending in EXCEPTIONS.items():
        rule = RULES[ending]
        judged = rule.with_artifact is Disposition.JUDGE
        overrides[name] = {"should_retry": rule.retry, "should_grade": judged, "has_valid_reward": judged}
    return overrides
