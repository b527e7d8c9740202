"""A trial for a person: who solved what and how it ended, what was done, the program, and the verdict.

Everything that an agent or its program wrote goes through `printable` and into `Text`, so that it can neither drive the
terminal nor use markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from orbit.accounting import AgentUsage, TokenUsage
from orbit.execution.outcomes import Disposition
from orbit.execution.trials import TrialRecord
from orbit.reports._text import count, printable, seconds
from orbit.reports.transcript import Action, ActionKind, Transcript, TranscriptStep
from orbit.reports.trial import Artifact, TrialView
from orbit.reports.verdict_text import VALIDITY_STYLES, render_verdict

if TYPE_CHECKING:
    from rich.text import Text

Section = Literal["transcript", "artifact", "verdict"]
SECTIONS: tuple[Section, ...] = ("transcript", "artifact", "verdict")

DISPOSITIONS = {
    Disposition.RETRY: "to be tried again",
    Disposition.JUDGE: "judged",
    Disposition.FAILED_TRIAL: "failed",
    Disposition.HARNESS_ERROR: "an error of the harness or its surroundings, nobody's failure",
}
MAX_LINES = {"prompt": 3, "message": 40, "command": 40, "write": 12, "output": 12, "artifact": 400}
"""Lines shown of each kind of text unless everything is asked for."""
MAX_LINE_CHARS = 400
_TEXT_OF_STEP = "      "
_LABEL_WIDTH = 10


def render_trial(view: TrialView, section: Section | None = None, *, full: bool = False) -> Text:
    """The whole trial, or one section of it.

    Args:
        view: what to show.
        section: only that.
        full: cut nothing, and show every piece of evidence.
    """
    from rich.text import Text

    parts = [_head(view.trial)] if section is None and view.trial is not None else []
    for name in SECTIONS if section is None else (section,):
        parts.append(_section(view, name, full=full))
    return Text("\n\n").join(parts)


def _section(view: TrialView, name: Section, *, full: bool) -> Text:
    from rich.text import Text

    if name == "transcript" and view.transcript is not None:
        return _transcript(view.transcript, full=full)
    if name == "artifact" and view.artifact is not None:
        return _artifact(view.artifact, full=full)
    if name == "verdict" and view.verdict is not None:
        return render_verdict(view.verdict, view.verdict_path, verbose=full)
    reason = printable(view.missing.get(name, "nothing is kept")).replace("\n", " ")
    return Text.assemble((name.capitalize(), "bold"), (f"  none: {reason}", "dim"))


# --- who, what and how it ended --------------------------------------------------------------------------------


def _head(trial: TrialRecord) -> Text:
    from rich.text import Text

    line = Text.assemble((f" {trial.validity.value.upper()} ", VALIDITY_STYLES[trial.validity]))
    line.append(f" ({trial.failure_mode.value})" if trial.failure_mode is not None else "", "bold red")
    line.append(f"  {printable(trial.name)}", "bold")
    agent = [f"{trial.agent} {trial.agent_version or ''}".strip(), trial.model or ""]
    agent.append(f"effort {trial.effort}" if trial.effort else "")
    cell = [trial.task, trial.framework, trial.variant or "", trial.contract.value]
    reward = "no reward" if trial.reward is None else f"reward {trial.reward}"
    ended = f"{trial.ending.value.replace('_', ' ')}; {DISPOSITIONS[trial.disposition]}, {reward}"
    facts = [
        ("Agent", _listed(agent)),
        ("Task", _listed(cell)),
        ("Ended", ended),
        ("", trial.summary),
        ("Where", _listed([trial.environment, trial.image or ""])),
        ("Took", _phases(trial)),
        *(_usage(trial.usage) if trial.usage is not None else [("Tokens", "no usage is recorded")]),
        *(("Warning", text) for text in trial.warnings),
    ]
    return Text("\n").join([line, *(_labelled(label, text) for label, text in facts if text)])


def _phases(trial: TrialRecord) -> str:
    phases = {
        "environment": trial.environment_setup_sec,
        "agent set-up": trial.agent_setup_sec,
        "solving": trial.solving_sec,
        "verification": trial.verification_sec,
    }
    return _listed([f"{name} {seconds(value)}" for name, value in phases.items() if value is not None])


def _usage(usage: AgentUsage) -> Iterator[tuple[str, str]]:
    yield "Tokens", f"{_tokens(usage.tokens)}  ({usage.source})"
    if len(usage.models) > 1:
        for model in usage.models:
            yield "", f"{model.model}: {_tokens(model.tokens)}, {_usd(model.cost_usd)}"
    sources = ", ".join(dict.fromkeys(model.price_source for model in usage.models if model.price_source))
    reported = "none" if usage.reported_cost_usd is None else _usd(usage.reported_cost_usd)
    yield "Cost", f"{_usd(usage.cost_usd)}{f' by {sources}' if sources else ''}; the agent reports {reported}"
    for warning in usage.warnings:
        yield "Warning", warning


def _tokens(tokens: TokenUsage) -> str:
    kinds = {
        "uncached input": tokens.uncached_input,
        "cached input": tokens.cached_input,
        "cache write": tokens.cache_write,
        "output": tokens.output,
    }
    return _listed([f"{'unknown' if number is None else f'{number:,}'} {kind}" for kind, number in kinds.items()])


def _usd(cost: float | None) -> str:
    return "unknown cost" if cost is None else f"{cost:.4f} USD"


def _listed(parts: list[str]) -> str:
    return " · ".join(part for part in parts if part)


def _labelled(label: str, text: str) -> Text:
    from rich.text import Text

    return Text.assemble((f"{label:<{_LABEL_WIDTH}}", "bold"), printable(text).replace("\n", " "))


# --- what was done ---------------------------------------------------------------------------------------------


def _transcript(transcript: Transcript, *, full: bool) -> Text:
    from rich.text import Text

    who = printable(f"{transcript.agent} {transcript.version}".strip())
    lines = [
        Text.assemble(
            ("Transcript", "bold"), (f"  {count(len(transcript.steps), 'step')} of {who or 'an agent'}", "dim")
        )
    ]
    for step in transcript.steps:
        lines += _step(step, full=full)
    if transcript.n_subagents:
        lines.append(
            Text(f"{count(transcript.n_subagents, 'trajectory', 'trajectories')} of subagents not shown", "dim")
        )
    return Text("\n").join(lines)


def _step(step: TranscriptStep, *, full: bool) -> list[Text]:
    from rich.text import Text

    title = Text.assemble((f"{step.number:>4}  ", "bold"), (f"{printable(step.source)}  ", "bold cyan"))
    known = [] if step.since_start_sec is None else [f"+{seconds(max(step.since_start_sec, 0.0))}"]
    if step.source == "agent" and step.input_tokens is not None:
        known.append(f"{step.input_tokens:,} tokens sent, {step.output_tokens or 0:,} received so far")
    lines = [title.append(_listed(known), "dim")]
    lines += _block(step.reasoning, "message", "dim italic", full=full)
    lines += _block(step.message, "message" if step.source == "agent" else "prompt", "", full=full)
    for action in step.actions:
        lines += _action(action, full=full)
    return lines


def _action(action: Action, *, full: bool) -> list[Text]:
    from rich.text import Text

    files = printable(", ".join(action.files)).replace("\n", " ")
    lines: list[Text] = []
    if action.kind is ActionKind.COMMAND:
        lines += _block(action.text, "command", "bold", full=full, first="    $ ")
        lines += [Text(f"{_TEXT_OF_STEP}changes {files}", "yellow")] if files else []
    elif action.tool:
        verb = "writes" if action.kind is ActionKind.WRITE else "reads" if action.kind is ActionKind.READ else "uses"
        tool = printable(action.tool).replace("\n", " ")
        what = f"{files}  ({tool})" if files else tool
        lines.append(
            Text.assemble((f"    {verb} ", "bold"), (what, "yellow" if action.kind is ActionKind.WRITE else ""))
        )
        lines += _block(action.text, "write", "green" if action.kind is ActionKind.WRITE else "dim", full=full)
    lines += _block(action.output or "", "output", "dim", full=full, prefix=f"{_TEXT_OF_STEP}| ")
    if action.output is None:
        lines.append(Text(f"{_TEXT_OF_STEP}(no output is recorded)", "dim"))
    return lines


def _block(
    text: str, kind: str, style: str, *, full: bool, first: str = _TEXT_OF_STEP, prefix: str = _TEXT_OF_STEP
) -> list[Text]:
    """Foreign text, safe for a terminal, indented, and cut in the middle with a note of how much."""
    from rich.text import Text

    lines = _lines(text)
    if not lines:
        return []
    limit = MAX_LINES[kind]
    if full or len(lines) <= limit + 1:
        head, tail, n_cut = lines, [], 0
    else:
        n_tail = limit // 3
        head, tail = lines[: limit - n_tail], lines[len(lines) - n_tail :]
        n_cut = len(lines) - len(head) - len(tail)
    shown = [Text.assemble((prefix, "dim"), (_short(line, full=full), style)) for line in head]
    if first != _TEXT_OF_STEP:
        shown[0] = Text.assemble((first, "bold green"), (_short(head[0], full=full), style))
    if n_cut:
        shown.append(Text(f"{prefix}... {count(n_cut, 'line')} cut (--full shows them)", "dim italic"))
    return shown + [Text.assemble((prefix, "dim"), (_short(line, full=full), style)) for line in tail]


def _lines(text: str) -> list[str]:
    return printable(text.replace("\r\n", "\n")).strip("\n").split("\n") if text.strip() else []


def _short(line: str, *, full: bool) -> str:
    n_cut = len(line) - MAX_LINE_CHARS
    return line if full or n_cut <= 0 else f"{line[:MAX_LINE_CHARS]}... {n_cut} characters cut (--full shows them)"


# --- the program -----------------------------------------------------------------------------------------------


def _artifact(artifact: Artifact, *, full: bool) -> Text:
    from rich.syntax import Syntax
    from rich.text import Text

    lines = printable(artifact.source.replace("\r\n", "\n")).removesuffix("\n").split("\n")
    shown = lines if full else [_short(line, full=False) for line in lines[: MAX_LINES["artifact"]]]
    title = Text.assemble(
        ("Artifact", "bold"), (f"  {printable(str(artifact.path))}  {count(len(lines), 'line')}", "dim")
    )
    # The 16 colours of the terminal suit dark and light ones.
    code = Syntax("", "python", theme="ansi_dark", background_color="default").highlight("\n".join(shown))
    width = len(str(len(lines)))
    numbered = [
        Text.assemble((f"{number:>{width}}  ", "dim"), line)
        for number, line in enumerate(code.split("\n", allow_blank=True)[: len(shown)], 1)
    ]
    if len(lines) > len(shown):
        numbered.append(Text(f"... {count(len(lines) - len(shown), 'line')} cut (--full shows them)", "dim italic"))
    return Text("\n").join([title, *numbered])
