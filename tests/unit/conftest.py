"""A data root with one suite, one task and one framework of no relation to the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

TASK_TOML = """\
schema_version = "1.4"
artifacts = ["/app/solution.py"]

[task]
name = "toys/01-coin"
description = "Toss a coin."

[metadata.orbit]
schema_version = 1
title = "Coin"
contracts = ["orbit-2"]

[metadata.orbit.config]
n_tosses = 3
bias = 0.5
words = ["heads", "tails"]
nested = [[1, 2], [3, 4]]

[agent]
timeout_sec = 60

[environment]
cpus = 2
memory_mb = 1024
"""
EVALUATOR = """\
class _Evaluator:
    def exact_keys(self):
        return ("bias", "nested")
EVALUATOR = _Evaluator()
"""
EXACT = """\
{"schema_version": 1, "entries": [{"config": {"bias": 0.5, "nested": [[1, 2], [3, 4]]}, "values": {"mean": 1.5},
  "method": "by hand", "command": "none"}]}
"""
FRAMEWORK_TOML = """\
schema_version = 1
title = "Toy Framework"
package = "toy-framework"
import_name = "toyframework"
python = "3.12"
image = "orbit-toy"
homepage = "none"
bare_imports = ["toyframework"]

[policy]
required = ["toyframework"]
companions = ["toyframework_extras"]
forbidden_extra = ["rival"]

[variants]
short = "short.md"
"""
POLICY_TOML = """\
schema_version = 1
quantum_packages = ["toyframework", "toyframework_extras", "otherframework", "dotted.quantum"]
tensor_network_libraries = ["networks"]
"""
FILES = {
    "tasks/toys/shared.md.j2": "Rules for {{ contract }}: {{ max_lines }} lines, {{ limits.cpus }} cores.\n",
    "tasks/toys/01-coin/task.toml": TASK_TOML,
    "tasks/toys/01-coin/instruction.md": "# Coin\n\nToss it.\n",
    "tasks/toys/01-coin/environment/Dockerfile": "FROM scratch\n",
    "tasks/toys/01-coin/tests/test.sh": "exit 1\n",
    "tasks/toys/01-coin/tests/evaluator.py": EVALUATOR,
    "tasks/toys/01-coin/tests/oracle.py": "ORACLE = object()\n",
    "tasks/toys/01-coin/tests/exact.json": EXACT,
    "tasks/toys/01-coin/tests/mutants/wrong.py": "SECRET_MUTANT = 1\n",
    "frameworks/_shared/policy.toml": POLICY_TOML,
    "frameworks/_shared/prompt.md.j2": (
        "Use {{ framework.title }} {{ framework.version }}.\n{% block native %}{% endblock %}\n"
    ),
    "frameworks/toy/framework.toml": FRAMEWORK_TOML,
    "frameworks/toy/requirements.txt": "toy-framework==1.2.3 \\\n    --hash=sha256:00\n",
    "frameworks/toy/prompt.md": '{% extends "_shared/prompt.md.j2" %}{% block native %}Natively.{% endblock %}\n',
    "frameworks/toy/short.md": "Be short.\n",
    "references/toys/01-coin/toy.py": "def run_solution(config):\n    return {}\n",
}


@pytest.fixture
def toy_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "data"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("ORBIT_DATA", str(root))
    monkeypatch.setenv("ORBIT_CACHE_DIR", str(tmp_path / "cache"))
    return root
