"""The rules of the static policy: what each is called, what breaking it means, and under which contract it can fail."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orbit.verification.verdict import Contract, FailureMode, Outcome

MAX_FINDINGS = 20
"""Findings of one rule that become evidence; the last row counts the rest."""


class Rule(StrEnum):
    """Names of the checks, in the order in which they are reported."""

    PARSES = "parses"
    LINE_COUNT = "line_count"
    REQUIRED_FRAMEWORK_IMPORTED = "required_framework_imported"
    REQUIRED_FRAMEWORK_CALLED = "required_framework_called"
    OTHER_FRAMEWORK_IMPORT = "other_framework_import"
    MODULE_PATCHING = "module_patching"
    TESTS_ACCESS = "tests_access"
    DYNAMIC_IMPORT = "dynamic_import"
    FILE_ACCESS = "file_access"
    CHILD_PROCESS = "child_process"
    PROCESS_ACCESS = "process_access"
    NETWORK_ACCESS = "network_access"
    CTYPES_ACCESS = "ctypes_access"
    INTROSPECTION = "introspection"
    ENVIRONMENT_ACCESS = "environment_access"
    BACKGROUND_WORK = "background_work"
    COMPUTED_NAME = "computed_name"
    UNLISTED_IMPORT = "unlisted_import"
    BULK_DATA = "bulk_data"
    SIZE_DECISION = "size_decision"
    JOINED_STATEMENTS = "joined_statements"
    TENSOR_NETWORK_LIBRARY = "tensor_network_library"


WHY: dict[Rule, str] = {
    Rule.PARSES: "the file must be readable Python",
    Rule.LINE_COUNT: "a solution has a limited number of effective lines",
    Rule.REQUIRED_FRAMEWORK_IMPORTED: "the required framework must be imported",
    Rule.REQUIRED_FRAMEWORK_CALLED: "the required framework must do the quantum computation",
    Rule.OTHER_FRAMEWORK_IMPORT: "no other quantum framework may be used",
    Rule.MODULE_PATCHING: "attributes of modules that the file does not define may not be replaced",
    Rule.TESTS_ACCESS: "tests, references and rewards are out of bounds",
    Rule.DYNAMIC_IMPORT: "code or modules that the source does not show may not be loaded",
    Rule.FILE_ACCESS: "files may not be touched",
    Rule.CHILD_PROCESS: "other processes may not be started",
    Rule.PROCESS_ACCESS: "processes, signals and limits may not be touched",
    Rule.NETWORK_ACCESS: "the network may not be used",
    Rule.CTYPES_ACCESS: "native code and raw memory may not be reached",
    Rule.INTROSPECTION: "frames, namespaces and the interpreter's own objects may not be inspected",
    Rule.ENVIRONMENT_ACCESS: "environment variables may not be read or set",
    Rule.BACKGROUND_WORK: "work beside or after the call escapes its clock; a person should look",
    Rule.COMPUTED_NAME: "the name is made at run time, so the source does not show what is used; a person should look",
    Rule.UNLISTED_IMPORT: "the policy does not know this module; a person should look",
    Rule.BULK_DATA: "stored data could be stored answers; a person should look",
    Rule.SIZE_DECISION: "the runs that judge a solution differ in size and step count; a person should look",
    Rule.JOINED_STATEMENTS: "statements joined by semicolons hide the length of a program; a person should look",
    Rule.TENSOR_NETWORK_LIBRARY: "a general tensor-network library; weighs together with low provenance",
}
"""The reason of each rule, as messages give it."""

FLAG_ONLY = frozenset(
    {
        Rule.BACKGROUND_WORK,
        Rule.COMPUTED_NAME,
        Rule.UNLISTED_IMPORT,
        Rule.BULK_DATA,
        Rule.SIZE_DECISION,
        Rule.JOINED_STATEMENTS,
    }
)
"""Rules whose findings a reviewer decides."""

PUBLISHED = frozenset(
    {
        Rule.PARSES,
        Rule.LINE_COUNT,
        Rule.REQUIRED_FRAMEWORK_IMPORTED,
        Rule.OTHER_FRAMEWORK_IMPORT,
        Rule.MODULE_PATCHING,
        Rule.TESTS_ACCESS,
    }
)
"""Rules that can fail under `orbit-q-1`."""

FRAMEWORK_RULES = frozenset(
    {Rule.REQUIRED_FRAMEWORK_IMPORTED, Rule.REQUIRED_FRAMEWORK_CALLED, Rule.OTHER_FRAMEWORK_IMPORT}
)
"""Rules whose failure is a bypass of the framework."""


@dataclass(frozen=True)
class Finding:
    """One place where a rule is broken.

    Attributes:
        line: physical line, from 1; 0 when it is about the file as a whole.
        text: what was found, as written or as resolved (`os.system`).
        doubtful: true when it can only flag, because what is meant depends on values.
    """

    rule: Rule
    line: int
    text: str
    doubtful: bool = False
    value: int | None = None
    limit: int | None = None

    def message(self) -> str:
        """Line, what was found and why it matters."""
        place = f"line {self.line}: " if self.line else ""
        return f"{place}{self.text}: {WHY[self.rule]}"


def outcome_of(finding: Finding, contract: Contract) -> Outcome:
    """How a finding counts under a contract."""
    if finding.rule is Rule.TENSOR_NETWORK_LIBRARY:
        return Outcome.PASS
    if finding.rule is Rule.CHILD_PROCESS and contract is Contract.ORBIT_Q_1:
        return Outcome.PASS
    if finding.doubtful or finding.rule in FLAG_ONLY:
        return Outcome.FLAG
    if contract is Contract.ORBIT_Q_1 and finding.rule not in PUBLISHED:
        return Outcome.FLAG
    return Outcome.FAIL


def failure_mode_of(rules: set[str]) -> FailureMode:
    """The failure mode of a file that breaks `rules`: unreadable, else a bypass of the framework, else the policy."""
    if Rule.PARSES in rules:
        return FailureMode.RUNTIME_API_EXCEPTION
    if rules & FRAMEWORK_RULES:
        return FailureMode.FRAMEWORK_BYPASS
    return FailureMode.POLICY_VIOLATION
