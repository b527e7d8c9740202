"""A verdict as the flat numbers that harbor's reward file may hold."""

from __future__ import annotations

import math

from orbit.verification.verdict import Outcome, StageStatus, Validity, Verdict

COMPONENTS = ("functional", "probes", "static_policy", "execution", "semantic_audit")
"""Stages whose outcome stands beside the reward."""


def rewards_of(verdict: Verdict) -> dict[str, float | int]:
    """The reward, its components and what qualifies it.

    A stage that passed or was flagged counts 1, any other 0; only an audit that did not run counts 1 as well, beside
    `audited` 0. Times appear only if they were measured.
    """
    rewards: dict[str, float | int] = {"reward": verdict.reward}
    for name in COMPONENTS:
        stage = verdict.stages.get(name)
        counted = {StageStatus.PASS, StageStatus.FLAGGED}
        if name == "semantic_audit":
            counted.add(StageStatus.SKIPPED)
        rewards[name] = int(stage.status in counted) if stage is not None else int(name == "semantic_audit")
    audit = verdict.stages.get("semantic_audit")
    rewards["audited"] = int(audit is not None and audit.status is not StageStatus.SKIPPED)
    rewards["flags"] = sum(item.outcome is Outcome.FLAG for stage in verdict.stages.values() for item in stage.evidence)
    rewards["provisional"] = int(verdict.validity is Validity.PROVISIONAL)
    for key in ("slowdown", "runtime_sec"):
        value = getattr(verdict.timing, key)
        if value is not None and math.isfinite(value):
            rewards[key] = value
    return rewards
