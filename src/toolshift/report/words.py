"""Causes and outcomes in words that a reader who did not make the run understands."""

from __future__ import annotations

from toolshift.core.command_line import command
from toolshift.core.scene import Outcome
from toolshift.episode.grade import Grade
from toolshift.measure.metrics import Measures
from toolshift.measure.report import AgentReport, EmptyReplies, Judged, UnreadCalls

CAUSES = {
    "memorised_name": "It called a tool by a remembered name that is not available here.",
    "wrong_tool": "It called a tool that has no part in the task.",
    "invented_tool": "It invented a tool: it called one that was never available.",
    "bad_arguments": "It passed a wrong argument: copied wrongly, not allowed by the schema, or "
    "not what the task needs.",
    "invented_value": "It invented a value: it passed an id, a name or a choice that it was "
    "never shown.",
    "filled_option": "It filled an optional parameter that the task does not need, with a value "
    "that the schema does not allow.",
    "ignored_result": "Results had shown the right value, or all that the answer depends on, but "
    "it used another value or only a part.",
    "ignored_update": "It kept using a value, a rule or a request that had been replaced.",
    "missed_page": "It did not read a part of a result that the task needs, such as further pages.",
    "surplus_write": "It made a write twice, or one that nobody had asked for.",
    "no_recovery": "It stopped at a failure or a notice that offered a way to continue.",
    "wrong_order": "It called a tool before the one that returns what the tool needs.",
    "repetition": "It repeated a failed call although nothing asked for it.",
    "guessed_among_codes": "It gave several codes or values without saying which one is meant.",
    "answered_without_evidence": "It answered without evidence: the request was not fulfilled.",
    "wrong_refusal": "Wrong refusal: it refused a solvable task, or refused before there was a "
    "reason.",
    "malformed_output": "It made a call that could not be read.",
    "broke_down": "It broke down: its own code raised an error, took too long, or gave no answer.",
    "budget": "It ran out of calls, of turns or of its model's context.",
    "infrastructure": "Its endpoint failed: not the agent's fault, and not scored.",
    "simulator": "The simulated user did not understand its question: not scored, but a failure "
    "in the headline.",
    "unrecorded": "It made a call that the recording does not contain: not scored.",
    "broken_shift": "The code of the shift failed: not the agent's fault, and not scored.",
    "own_outage": "Its own program reported an outage: not scored, but a failure in the headline.",
    "dropped_connection": "A server closed the connection during its call: not scored, but a "
    "failure in the headline.",
    "unclear_answer": "The type of the answer cannot decide whether it is right.",
}
"""Every cause of `measure.causes.CAUSES` as a sentence about the agent."""


def right_refusal(outcome: Outcome) -> str:
    """The refusal that is the right end of a scene, and how sure that is."""
    told = f"refuse: {outcome.refusal}"
    if not outcome.presumed:
        return told
    return (
        f"{told} (judged only by the task's expected calls, which need a tool that is gone; an "
        "answer that meets the check with results of other tools passes too)"
    )


def marks_of(each: AgentReport) -> str:
    """What labels the results of an agent: a constraint on decoding, a judge; "" for neither."""
    judged = f"prose read by {each.judged.judge}" if each.judged else ""
    return ", ".join(mark for mark in (each.decoding, judged) if mark)


def unread_in_words(unread: UnreadCalls) -> str:
    """How many replies look like calls that were not read, and what to do."""
    holds = "replies hold" if unread.replies != 1 else "reply holds"
    return (
        f"{unread.replies} {holds} what looks like a tool call in a form that cannot be read, "
        f"and counted as prose. See one: {command('trace', 'RUN', unread.example)}. If it is a "
        "call: start the server with the parser of this model's calls, or use --protocol text"
    )


def empty_in_words(empty: EmptyReplies) -> str:
    """How many replies are empty, where a text stands beside them, and what to do."""
    are = "replies are" if empty.replies != 1 else "reply is"
    where = f" There is text only in {' and '.join(empty.beside)}." if empty.beside else ""
    return (
        f"{empty.replies} {are} empty (no text, no tool call), and counted as an empty "
        f"answer.{where} See one: {command('trace', 'RUN', empty.example)}. Often the token "
        "limit ended the model's thinking, or the server took the answer for a part of the "
        "thinking"
    )


def unclear_in_words(row: Measures) -> str:
    """How many answers are unclear, what that does to the accuracy, and what to do; "" for none."""
    if not row.unclear:
        return ""
    said = "1 answer is" if row.unclear == 1 else f"{row.unclear} answers are"
    low, high = (f"{100 * bound:.0f}%" for bound in row.bounds)
    return (
        f"{said} unclear: accuracy over all episodes lies between {low} (they fail) and {high} "
        "(they pass). List them: toolshift trace RUN ; decide one: toolshift report RUN --decide "
        "EPISODE=right (or =wrong)"
    )


def judged_in_words(judged: Judged) -> str:
    """How much a judge read, and where it failed."""
    many = "s" if judged.messages != 1 else ""
    said = f"{judged.messages} message{many} in prose read by the judge {judged.judge}"
    failed = f"; it failed on {judged.failed} more, which the built-in rules read"
    return said + failed * bool(judged.failed)


def cause_in_words(cause: str) -> str:
    """A cause as a sentence; "" for a pass."""
    return CAUSES.get(cause, cause.replace("_", " "))


def outcome_of(grade: Grade) -> str:
    """How an episode came out: "passed", "failed", "void" or "unclear"."""
    if grade.passed:
        return "passed"
    if grade.unclear:
        return "unclear"
    return "void" if grade.void else "failed"


def verdict(grade: Grade) -> str:
    """The outcome and the cause in a few words: "failed: memorised name"."""
    cause = "" if grade.unclear else grade.cause.replace("_", " ")
    return f"{outcome_of(grade)}: {cause}" if cause else outcome_of(grade)
