"""Hand-made verdicts for the tests of everything that shows one."""

from typing import Any

from orbit.verification.verdict import (
    Contract,
    Evidence,
    FailureMode,
    Outcome,
    Sandbox,
    Stage,
    StageStatus,
    Timing,
    Validity,
    Verdict,
    decide,
    reward,
)


def passing(n: int, prefix: str) -> list[Evidence]:
    return [Evidence(check=f"{prefix}_{i}", outcome=Outcome.PASS, value=0.1 * i, limit=1.0) for i in range(n)]


def stages() -> dict[str, Stage]:
    return {
        "static_policy": Stage.from_evidence(passing(4, "rule"), FailureMode.POLICY_VIOLATION),
        "execution": Stage.from_evidence(passing(3, "run"), FailureMode.RUNTIME_API_EXCEPTION),
        "functional": Stage.from_evidence(passing(5, "threshold"), FailureMode.PROBLEM_MISMATCH),
        "probes": Stage.from_evidence(passing(6, "probe"), FailureMode.PROBLEM_MISMATCH),
        "provenance": Stage.skipped("no adapter for this framework"),
        "semantic_audit": Stage.skipped("no judge is configured; set ANTHROPIC_API_KEY"),
    }


def make_verdict(**changes: Any) -> Verdict:
    found = changes.pop("stages", stages())
    decision = decide(found)
    values: dict[str, Any] = {
        "task": "99-toy-chain",
        "suite": "toys",
        "framework": "tensorcircuit",
        "contract": Contract.ORBIT_2,
        "validity": decision.validity,
        "failure_mode": decision.failure_mode,
        "summary": "Nothing failed; the audit has not run.",
        "reward": reward(found),
        "stages": found,
        "timing": Timing(
            runtime_sec=12.34,
            import_sec=0.2,
            reference_sec=11.9,
            slowdown=1.037,
            slowdown_interval=(0.98, 1.07),
            pairs=[(12.3, 11.9), (12.4, 11.9)],
            peak_memory_bytes=812 * 2**20,
            n_cores=2,
        ),
        "sandbox": Sandbox(kind="bubblewrap", network=False, unprivileged=True),
        "seed": 7,
        "verified_at": "2026-01-01T00:00:00Z",
    }
    return Verdict(**{**values, **changes})


def invalid_verdict(**changes: Any) -> Verdict:
    found = stages()
    evidence = [
        Evidence(
            check="final_energy_density",
            outcome=Outcome.FAIL,
            value=-0.5123456789,
            limit=-0.7,
            message="the run must reach the exact energy density plus 1",
            run="timed",
        ),
        *passing(2, "threshold"),
    ]
    found["functional"] = Stage.from_evidence(evidence, FailureMode.PROBLEM_MISMATCH)
    return make_verdict(stages=found, summary="The final energy density misses its limit.", **changes)


def error_verdict() -> Verdict:
    found = stages()
    found["execution"] = Stage.error("the sandbox did not start")
    return make_verdict(stages=found, timing=Timing(), summary="The harness failed.", sandbox=None)


__all__ = ["StageStatus", "Validity", "error_verdict", "invalid_verdict", "make_verdict", "passing", "stages"]
