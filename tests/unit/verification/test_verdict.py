"""The validity rule as a table, and what must hold for every combination of stages."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from orbit.verification.verdict import (
    REQUIRED_STAGES,
    STAGES,
    Contract,
    Evidence,
    FailureMode,
    Outcome,
    Stage,
    StageStatus,
    Timing,
    Validity,
    Verdict,
    decide,
    reward,
)

MODES = {
    "solving": FailureMode.AGENT_NO_ARTIFACT,
    "static_policy": FailureMode.FRAMEWORK_BYPASS,
    "execution": FailureMode.RESOURCE_TIMEOUT_OOM,
    "functional": FailureMode.PROBLEM_MISMATCH,
    "probes": FailureMode.PROBLEM_MISMATCH,
    "provenance": FailureMode.FRAMEWORK_BYPASS,
    "semantic_audit": FailureMode.POLICY_VIOLATION,
}
LETTERS = {"p": StageStatus.PASS, "F": StageStatus.FAIL, "g": StageStatus.FLAGGED, "s": StageStatus.SKIPPED}
LETTERS |= {"E": StageStatus.ERROR}


def stages(letters: str) -> dict[str, Stage]:
    """One letter per stage in `STAGES` order; `.` where the stage is absent."""
    made = {}
    for name, letter in zip(STAGES, letters, strict=True):
        if letter != ".":
            status = LETTERS[letter]
            made[name] = Stage(status=status, failure_mode=MODES[name] if status is StageStatus.FAIL else None)
    return made


VALID, INVALID = Validity.VALID, Validity.INVALID
PROVISIONAL, ERROR = Validity.PROVISIONAL, Validity.ERROR

# solving, static_policy, execution, functional, probes, provenance, semantic_audit
TABLE: list[tuple[str, Validity, str | None, int]] = [
    # everything passed
    ("ppppppp", VALID, None, 1),
    (".pppppp", VALID, None, 1),
    (".pppp.p", VALID, None, 1),
    (".ppppsp", VALID, None, 1),
    # nothing failed, but the audit did not run
    ("pppppps", PROVISIONAL, "semantic_audit", 1),
    ("pppppp.", PROVISIONAL, "semantic_audit", 1),
    (".pppp..", PROVISIONAL, "semantic_audit", 1),
    # flags
    (".gppppp", PROVISIONAL, "static_policy", 1),
    (".pgpppp", PROVISIONAL, "execution", 1),
    (".ppgppp", PROVISIONAL, "functional", 1),
    (".pppgpp", PROVISIONAL, "probes", 1),
    (".ppppgp", PROVISIONAL, "provenance", 1),
    (".pppppg", PROVISIONAL, "semantic_audit", 1),
    ("gpppppp", PROVISIONAL, "solving", 1),
    (".gppggs", PROVISIONAL, "static_policy", 1),
    (".ppppgs", PROVISIONAL, "provenance", 1),
    # one failure
    ("Fpppppp", INVALID, "solving", 1),
    (".Fppppp", INVALID, "static_policy", 0),
    (".pFpppp", INVALID, "execution", 0),
    (".ppFppp", INVALID, "functional", 0),
    (".pppFpp", INVALID, "probes", 0),
    (".ppppFp", INVALID, "provenance", 1),
    (".pppppF", INVALID, "semantic_audit", 0),
    # the first failure gives the mode, whatever comes after
    (".FFFFFF", INVALID, "static_policy", 0),
    (".pFsss.", INVALID, "execution", 0),
    (".ppFFps", INVALID, "functional", 0),
    (".ggpFgs", INVALID, "probes", 0),
    ("F......", INVALID, "solving", 0),
    ("F.ssss.", INVALID, "solving", 0),
    # a failure counts although the harness failed too
    (".pEFpps", INVALID, "functional", 0),
    (".FEssss", INVALID, "static_policy", 0),
    (".ppppEF", INVALID, "semantic_audit", 0),
    # the harness failed, or something required did not run
    (".Eppppp", ERROR, "static_policy", 0),
    (".pEssss", ERROR, "execution", 0),
    (".ppEppp", ERROR, "functional", 0),
    (".pppEpp", ERROR, "probes", 0),
    (".ppppEp", ERROR, "provenance", 1),
    (".pppppE", ERROR, "semantic_audit", 0),
    ("Epppppp", ERROR, "solving", 1),
    (".sppppp", ERROR, "static_policy", 0),
    (".psppps", ERROR, "execution", 0),
    (".ppspps", ERROR, "functional", 0),
    (".pppspp", ERROR, "probes", 0),
    (".ppp.pp", ERROR, "probes", 0),
    (".gpp.gs", ERROR, "probes", 0),
    (".......", ERROR, "static_policy", 0),
    ("p......", ERROR, "static_policy", 0),
    (".gEpppp", ERROR, "execution", 0),
]


@pytest.mark.parametrize(("letters", "validity", "deciding", "points"), TABLE)
def test_decision_and_reward(letters: str, validity: Validity, deciding: str | None, points: int) -> None:
    made = stages(letters)
    decision = decide(made)
    assert decision.validity is validity
    assert decision.deciding_stage == deciding
    expected = MODES[deciding] if validity is INVALID and deciding else None
    assert decision.failure_mode is expected
    assert reward(made) == points


RESOLVED: list[tuple[str, set[str], Validity, str | None]] = [
    (".pppppg", {"semantic_audit"}, VALID, None),
    (".pppppF", {"semantic_audit"}, VALID, None),
    (".gppppp", {"static_policy"}, VALID, None),
    (".gpppgp", {"static_policy"}, PROVISIONAL, "provenance"),
    (".gppppg", {"static_policy", "semantic_audit"}, VALID, None),
    # a reviewer's decision on one stage says nothing of another
    (".ppFppF", {"semantic_audit"}, INVALID, "functional"),
    (".gppppF", {"static_policy"}, INVALID, "semantic_audit"),
    (".gpppps", {"static_policy"}, PROVISIONAL, "semantic_audit"),
    # an audit that did not run, or a harness that failed, cannot be decided away
    (".pppppp", {"semantic_audit"}, VALID, None),
    (".pppps.", {"semantic_audit"}, PROVISIONAL, "semantic_audit"),
    (".pppppE", {"semantic_audit"}, ERROR, "semantic_audit"),
    (".pppspp", {"probes"}, ERROR, "probes"),
    # no opinion overturns a number
    (".ppFppp", {"functional"}, INVALID, "functional"),
    (".FppppF", {"static_policy", "semantic_audit"}, INVALID, "static_policy"),
]


def test_only_a_failed_stage_has_a_failure_mode() -> None:
    with pytest.raises(ValueError, match="cannot have failure mode"):
        Stage(status=StageStatus.PASS, failure_mode=FailureMode.POLICY_VIOLATION)
    with pytest.raises(ValueError, match="cannot have failure mode None"):
        Stage(status=StageStatus.FAIL)


@pytest.mark.parametrize(("letters", "resolved", "validity", "deciding"), RESOLVED)
def test_decision_of_a_reviewer(letters: str, resolved: set[str], validity: Validity, deciding: str | None) -> None:
    decision = decide(stages(letters), resolved=frozenset(resolved))
    assert (decision.validity, decision.deciding_stage) == (validity, deciding)


ANY_STAGES = st.lists(st.sampled_from("pFgsE."), min_size=len(STAGES), max_size=len(STAGES)).map("".join)


@settings(max_examples=500, deadline=None)
@given(ANY_STAGES)
def test_only_what_ran_and_passed_is_valid(letters: str) -> None:
    made = stages(letters)
    decision = decide(made)
    statuses = {name: stage.status for name, stage in made.items()}
    if decision.validity is VALID:
        assert all(statuses[name] is StageStatus.PASS for name in (*REQUIRED_STAGES, "semantic_audit"))
        assert reward(made) == 1
    assert (decision.validity is INVALID) == (StageStatus.FAIL in statuses.values())
    assert (decision.failure_mode is not None) == (decision.validity is INVALID)
    assert (decision.deciding_stage is None) == (decision.validity is VALID)


@settings(max_examples=300, deadline=None)
@given(ANY_STAGES, st.integers(min_value=0, max_value=len(STAGES) - 1), st.sampled_from("FE"))
def test_a_failure_or_error_never_helps(letters: str, position: int, worse: str) -> None:
    before = stages(letters)
    after = stages(letters[:position] + worse + letters[position + 1 :])
    assert reward(after) <= max(reward(before), int(STAGES[position] in ("solving", "provenance")))
    assert decide(after).validity in (INVALID, ERROR)


@pytest.mark.parametrize(
    ("outcomes", "status"),
    [
        ((), StageStatus.PASS),
        ((Outcome.PASS,), StageStatus.PASS),
        ((Outcome.NOT_APPLICABLE,), StageStatus.PASS),
        ((Outcome.PASS, Outcome.FLAG), StageStatus.FLAGGED),
        ((Outcome.FLAG, Outcome.FAIL, Outcome.PASS), StageStatus.FAIL),
        ((Outcome.NOT_APPLICABLE, Outcome.FAIL), StageStatus.FAIL),
    ],
)
def test_stage_adds_up_its_evidence(outcomes: tuple[Outcome, ...], status: StageStatus) -> None:
    for order in itertools.permutations(outcomes):
        evidence = [Evidence(check="x", outcome=outcome) for outcome in order]
        stage = Stage.from_evidence(iter(evidence), FailureMode.PROBLEM_MISMATCH)
        assert stage.status is status
        assert stage.evidence == evidence
        assert (stage.failure_mode is FailureMode.PROBLEM_MISMATCH) is (status is StageStatus.FAIL)


def test_stages_that_did_not_run_say_why() -> None:
    assert Stage.skipped("no key") == Stage(status=StageStatus.SKIPPED, reason="no key")
    assert Stage.error("no disk") == Stage(status=StageStatus.ERROR, reason="no disk")


def a_verdict() -> Verdict:
    made = stages(".ppFpgs")
    made["functional"].evidence.append(Evidence(check="loss", outcome=Outcome.FAIL, value=1.5, limit=1, run="timed"))
    return Verdict(
        task="02-entanglement-profile",
        suite="orbit-q",
        framework="tensorcircuit",
        contract=Contract.ORBIT_2,
        validity=INVALID,
        failure_mode=FailureMode.PROBLEM_MISMATCH,
        summary="loss too large",
        reward=0,
        stages=made,
        timing=Timing(runtime_sec=1.0, pairs=[(1.0, 0.5)], slowdown_interval=(1.5, 2.5)),
        seed=7,
        verified_at="2030-01-01T00:00:00Z",
    )


def test_verdict_survives_its_own_json() -> None:
    verdict = a_verdict()
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict


@pytest.mark.parametrize(
    "change", [{"reward": 2}, {"validity": "fine"}, {"schema_version": 2}, {"surprise": 1}, {"contract": "orbit-3"}]
)
def test_verdict_refuses_what_it_does_not_know(change: dict[str, object]) -> None:
    data = a_verdict().model_dump(mode="json") | change
    with pytest.raises(ValidationError):
        Verdict.model_validate(data)
