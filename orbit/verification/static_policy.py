"""Static policy: what the source of an artifact says, without running it.

Names are followed through aliases, attribute chains, constant strings, `getattr`, namespaces and containers, so each
finding names the line, the rule and why. What a syntax tree cannot show: what a value is that comes out of an own
function's parameters, a config entry or arithmetic on characters at run time (such names are flagged where they are
used), and what native code inside a harmless package does. The sandbox confines what slips through, and provenance
and the audit look at who did the physics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orbit.verification._policy_checks import Checker
from orbit.verification._policy_data import data_findings
from orbit.verification._policy_imports import StaticPolicyLists
from orbit.verification._policy_rules import (
    MAX_FINDINGS,
    Finding,
    Rule,
    failure_mode_of,
    outcome_of,
)
from orbit.verification._policy_text import UnreadableSourceError, count_lines, read
from orbit.verification.verdict import Contract, Evidence, Outcome, Stage

_MAX_MESSAGE = 300


def check_source(source: bytes, *, framework: StaticPolicyLists, contract: Contract, max_lines: int) -> list[Evidence]:
    """Check a file against every rule.

    Args:
        source: the file as it is; never executed. Any bytes are judged, none raises.
        framework: lists of the framework that the artifact must use.
        contract: under `orbit-q-1` only the published rules can fail, and child processes are allowed.
        max_lines: effective lines that a solution may have.

    Returns:
        At least one row per rule, in the order of `Rule`: one that passes, or up to twenty findings. A file that
        does not parse has the row `parses` only.
    """
    try:
        parsed = read(source)
    except UnreadableSourceError as error:
        return _rows([Finding(Rule.PARSES, 0, str(error))], contract, [Rule.PARSES])
    lines = count_lines(parsed, contract)
    checker = Checker(parsed, framework)
    findings = [*checker.findings, *data_findings(parsed), *_framework_findings(checker, framework)]
    if lines > max_lines:
        findings.append(Finding(Rule.LINE_COUNT, 0, f"{lines} effective lines", value=lines, limit=max_lines))
    evidence = _rows(findings, contract, Rule)
    return [
        row.model_copy(update={"value": lines, "limit": max_lines}) if row.check == Rule.LINE_COUNT else row
        for row in evidence
    ]


def stage(evidence: Sequence[Evidence]) -> Stage:
    """The stage that the evidence adds up to, with its failure mode.

    A file that does not parse is a `runtime_api_exception`, a broken framework rule a `framework_bypass`, any other
    failure a `policy_violation`; in this order where several fail.
    """
    failed = {row.check for row in evidence if row.outcome is Outcome.FAIL}
    return Stage.from_evidence(evidence, failure_mode_of(failed))


def effective_lines(source: bytes, contract: Contract) -> int:
    """Number of effective lines of a file as the contract counts them.

    Raises:
        ValueError: the file does not parse.
    """
    return count_lines(read(source), contract)


def _framework_findings(checker: Checker, framework: StaticPolicyLists) -> Iterable[Finding]:
    wanted = " or ".join(framework.required_imports)
    if not checker.imported:
        yield Finding(Rule.REQUIRED_FRAMEWORK_IMPORTED, 0, f"no import of {wanted}")
    if not checker.called:
        yield Finding(Rule.REQUIRED_FRAMEWORK_CALLED, 0, f"no call of {wanted} beyond its configuration")
    elif not checker.reached:
        text = f"no call of {wanted} can be reached from run_solution"
        yield Finding(Rule.REQUIRED_FRAMEWORK_CALLED, 0, text, doubtful=True)
    elif not checker.used:
        text = f"the value of every call of {wanted} is discarded"
        yield Finding(Rule.REQUIRED_FRAMEWORK_CALLED, 0, text, doubtful=True)


def _rows(findings: Sequence[Finding], contract: Contract, rules: Iterable[Rule]) -> list[Evidence]:
    """One row per finding and one passing row per rule without any."""
    rows: list[Evidence] = []
    for rule in rules:
        of_rule = [finding for finding in findings if finding.rule is rule]
        if not of_rule:
            rows.append(Evidence(check=rule, outcome=Outcome.PASS))
        rows.extend(_row(finding, contract) for finding in of_rule[:MAX_FINDINGS])
        if rest := of_rule[MAX_FINDINGS:]:
            rows[-1] = rows[-1].model_copy(update={"message": f"{rows[-1].message} (and {len(rest)} more)"})
    return rows


def _row(finding: Finding, contract: Contract) -> Evidence:
    # What is quoted comes from the candidate: it must not break lines or encodings of whoever shows it.
    message = finding.message().encode("ascii", "backslashreplace").decode()
    message = "".join(character if character.isprintable() else " " for character in message)
    if len(message) > _MAX_MESSAGE:
        message = message[:_MAX_MESSAGE] + " ..."
    return Evidence(
        check=finding.rule,
        outcome=outcome_of(finding, contract),
        value=finding.value,
        limit=finding.limit,
        message=message,
    )


__all__ = ["StaticPolicyLists", "check_source", "effective_lines", "stage"]
