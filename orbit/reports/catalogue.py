"""Tasks and frameworks for a person, and as plain data for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orbit.environments import environment_dir, environment_ready
from orbit.frameworks import Framework
from orbit.tasks import Task

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

    from orbit.reports.checks import Check
    from orbit.verification.verdict import Evidence


def describe_task(task: Task) -> dict[str, Any]:
    """A task as JSON data; the directory is left out, being this machine's own."""
    from orbit.frameworks import all_frameworks

    data: dict[str, Any] = task.model_dump(mode="json", exclude={"directory"})
    data["name"] = task.name
    data["references"] = [item.name for item in all_frameworks() if task.reference_path(item.name) is not None]
    return data


def describe_framework(framework: Framework) -> dict[str, Any]:
    """A framework as JSON data, with the state of its environment."""
    hidden = {"directory", "variants", "forbidden_imports", "tensor_network_libraries"}
    data: dict[str, Any] = framework.model_dump(mode="json", exclude=hidden)
    return data | {
        "version": framework.version,
        "requirements_digest": framework.requirements_digest,
        "environment": str(environment_dir(framework)),
        "environment_ready": environment_ready(framework),
        "variants": sorted(framework.variants),
        "forbidden_imports": sorted(framework.forbidden_imports),
        "tensor_network_libraries": sorted(framework.tensor_network_libraries),
    }


def render_tasks(tasks: Sequence[Task]) -> Table:
    """One row per task."""
    from rich.markup import escape

    table = _table("id", "title", "references")
    for task in tasks:
        table.add_row(escape(task.id), escape(task.title), ", ".join(describe_task(task)["references"]))
    return table


def render_lint(found: Mapping[str, Sequence[Evidence]]) -> Table:
    """One row per check of every task."""
    from rich.markup import escape

    table = _table("task", "check", "outcome", "what")
    for name, evidence in found.items():
        for item in evidence:
            colour = "green" if item.outcome == "pass" else "red"
            table.add_row(escape(name), item.check, f"[{colour}]{item.outcome}[/]", escape(item.message))
    return table


def render_task(task: Task, statement: str, checks: Sequence[Check]) -> Group:
    """Limits and default configuration, then the statement, then the checks."""
    from rich.console import Group
    from rich.text import Text

    limits = task.limits
    facts = {
        "contracts": ", ".join(task.contracts),
        "a run": f"{limits.run_timeout_sec:g} s, {limits.memory_mb} MiB, {limits.cpus} cores, {task.max_lines} lines",
        "agent": f"{limits.agent_timeout_sec:g} s to solve it",
        "references": ", ".join(describe_task(task)["references"]) or "none",
        **{key: _short(value) for key, value in task.config.items()},
    }
    heading = Text(f"{task.name}: {task.title}", "bold")
    return Group(
        heading, Text(task.summary), _facts(facts), Text(), Text(statement), Text("Checks", "bold"), _checks(checks)
    )


def _checks(checks: Sequence[Check]) -> Table:
    from rich.markup import escape

    table = _table("check", "runs", "passes if", "what is measured")
    for check in checks:
        told = check.rule if check.limit is None else f"{check.limit:.6g}" if check.rule == "" else check.rule
        passes = f"{check.relation} {told}".strip() + (" (else flagged)" if check.on_failure == "flag" else "")
        table.add_row(check.name, ", ".join(check.runs), escape(passes), escape(check.meaning))
    return table


def render_frameworks(frameworks: Sequence[Framework]) -> Group:
    """One row per framework, and the command that makes the environments that do not exist."""
    from rich.console import Group
    from rich.text import Text

    table = _table("name", "package", "python", "environment")
    for framework in frameworks:
        ready = environment_ready(framework)
        state = "ready" if ready else "not made"
        table.add_row(framework.name, f"{framework.package} {framework.version}", framework.python, state)
    missing = [framework.name for framework in frameworks if not environment_ready(framework)]
    advice = f"Environments are made on first use, or now: orbit frameworks sync {' '.join(missing)}" if missing else ""
    return Group(table, Text(advice))


def render_framework(framework: Framework) -> RenderableType:
    """Versions, environment, policy lists and variants."""
    from rich.console import Group
    from rich.text import Text

    ready = environment_ready(framework)
    facts = {
        "package": f"{framework.package} {framework.version}",
        "homepage": framework.homepage,
        "python": framework.python,
        "environment": f"{environment_dir(framework)} ({'ready' if ready else 'not made'})",
        "must import": ", ".join(framework.required_imports),
        "free to import": ", ".join(framework.bare_imports),
        "counts as it too": ", ".join(framework.companions) or "nothing else",
        "must not import": ", ".join(sorted(framework.forbidden_imports)),
        "noted if imported": ", ".join(sorted(framework.tensor_network_libraries)) + " (allowed; a reviewer sees it)",
        "prompt variants": ", ".join(sorted(framework.variants)) or "none",
        "requirements": framework.requirements_digest,
    }
    if not ready:
        facts["make it with"] = f"orbit frameworks sync {framework.name}"
    return Group(Text(f"{framework.name}: {framework.title}", "bold"), _facts(facts))


def _facts(facts: dict[str, str]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in facts.items():
        table.add_row(key, Text(value))
    return table


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, no_wrap=index == 0, overflow="fold")
    return table


def _short(value: Any, limit: int = 100) -> str:
    text = str(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
