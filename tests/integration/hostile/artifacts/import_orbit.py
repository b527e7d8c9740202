"""Imports the judge's own package."""


def run_solution(config):
    import orbit.verification.verdict

    return {"value": float(len(orbit.verification.verdict.STAGES))}
