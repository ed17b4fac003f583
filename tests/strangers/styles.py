"""Honest styles: competent agents with other habits of speech and work.

All of them play the oracle's play (its solver decides what to look up, ask, answer and refuse), and
speak every act as an OpenAI-style assistant message that goes through `Episode.take(Reply.of(...))`,
the public message contract. What an agent of that contract could not send is not sent here. The
one thing taken from inside is what the oracle takes too: the `Result` behind a shown text.

A style must score as `plain`, which speaks the protocol tools. `contested` says of a few that the
docs, as they stand, rule against them: they are honest, but a documented rule reads them otherwise.

Written from docs/agents.md, docs/measures.md, docs/connect.md and the README; not from grade.py,
causes.py, user.py or `read_prose`.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import Any

from toolshift.core.message import Reply
from toolshift.core.solver import Impossible, Solver
from toolshift.episode.budget import Budget
from toolshift.episode.episode import Episode, Over
from toolshift.episode.oracle import EpisodeBackend, OracleAgent

CODE = re.compile(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}\b")
IDENT = re.compile(r"^(?:[A-Z]{1,4}-?\d{3,}|[a-z]{2,4}_\d{2,})$")

# -- the machinery -----------------------------------------------------------------------------


def message(content: Any = "", *calls: tuple[str, Any], form: str = "json") -> dict[str, Any]:
    """An assistant message; arguments as JSON text ("json"), as an object ("dict") or as given."""
    made = []
    for number, (name, arguments) in enumerate(calls):
        held = arguments
        if form == "json" and not isinstance(arguments, str):
            held = json.dumps(arguments)
        function = {"name": name, "arguments": held}
        made.append({"id": f"c{number}", "type": "function", "function": function})
    said: dict[str, Any] = {"role": "assistant", "content": content}
    return {**said, "tool_calls": made} if made else said


class Moved(Exception):
    """What was said has been taken for an answer, and the user has gone on to his next request."""


class Talk:
    """The mouth: sends messages into an episode, and keeps what came back."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.sent: list[Any] = []
        self.heard: list[tuple[str, Any, tuple[str, Any]]] = []
        inner = episode._call

        def call(spoken: Any, said: str) -> Any:
            shown = inner(spoken, said)
            self.heard.append((spoken.name, spoken.arguments, shown))
            return shown

        episode._call = call  # type: ignore[method-assign]

    def say(self, said: Any) -> list[tuple[str, Any, tuple[str, Any]]]:
        """Sends one message; returns the calls that came of it."""
        if self.episode.end:
            raise Over
        self.sent.append(said)
        before = len(self.heard)
        self.episode.take(Reply.of(said))
        if self.episode.end:
            raise Over
        return self.heard[before:]


def leaves(data: Any) -> list[tuple[str, Any]]:
    """(key, value) of every leaf of a result."""
    if isinstance(data, dict):
        return [
            p
            for k, v in data.items()
            for p in (leaves(v) if isinstance(v, (dict, list)) else [(k, v)])
        ]
    if isinstance(data, list):
        return [p for one in data for p in leaves(one)]
    return []


def human(key: str) -> str:
    """A key in words: listing_ref -> listing reference."""
    words = (
        re.sub(r"(?<=[a-z])(?=[A-Z])", " ", str(key))
        .replace("_", " ")
        .replace("-", " ")
        .lower()
        .split()
    )
    return " ".join("reference" if w == "ref" else w for w in words) or "reference"


class StyleDesk(EpisodeBackend):
    """An episode as the solver's desk, on which every act is spoken in a style."""

    def __init__(self, episode: Episode, style: Style) -> None:
        super().__init__(episode, strict=False)
        self.style = style
        self.talk = Talk(episode)
        self.confused = 0  # questions that the user did not understand, or took for another
        self.misread = 0  # ends that were not taken for what they were
        self.extra = 0
        self.position = 0
        self.ahead: list[tuple[str, Any, Any]] = []
        seed = f"{episode.scene.task.id}/{[a.shift for a in episode.scene.shifts]}/{style.name}"
        self.number = int.from_bytes(blake2b(seed.encode(), digest_size=4).digest(), "big")
        self._plan: list[Any] | None = None

    # -- what the solver asks for

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        shown = self.style.call(self, name, arguments)
        self.position += 1
        return shown

    def ask(self, slot: str, question: str) -> str:
        episode = self.episode
        text = ""
        for attempt in range(self.style.patience):
            asked, text = episode.asked, ""
            self.talk.say(self.style.ask(self, slot, attempt))
            if episode.asked != asked:
                self.misread += 1
                raise Moved
            step = episode.steps[-1]
            text = step.text
            if step.kind == "ask" and step.slot == slot:
                return text
            self.confused += 1
        return text

    def finish(self, make: Any) -> None:
        """Says how a request ends until it is taken for an end."""
        attempt, asked = 0, self.episode.asked
        while self.episode.asked == asked:
            self.talk.say(make(attempt))
            attempt += 1
            if self.episode.asked == asked:
                self.misread += 1

    # -- what a style may want to know

    def pick(self, forms: Any, attempt: int = 0) -> Any:
        return forms[(self.number + attempt) % len(forms)]

    def tool(self, name: str) -> Any:
        return next((t for t in self.episode.tools if t.name == name), None)

    def results(self) -> list[tuple[str, Any]]:
        """The leaves of all successful results so far, in order."""
        return [
            p for _, _, (_, result) in self.talk.heard if result.ok for p in leaves(result.data)
        ]

    def label(self, answer: str) -> str:
        return next(
            (human(k) for k, v in reversed(self.results()) if str(v) == answer), "reference"
        )

    def key(self, answer: str) -> str:
        return next((str(k) for k, v in reversed(self.results()) if str(v) == answer), "reference")

    def idents(self, answer: str, most: int = 3) -> list[tuple[str, str]]:
        """Identifiers met on the way that are not codes, as (label, value)."""
        found = {
            str(v): human(k) for k, v in self.results() if isinstance(v, str) and IDENT.match(v)
        }
        return [(k, v) for v, k in found.items() if v != answer][:most]

    def codes(self, answer: str = "") -> dict[str, str]:
        """Other codes that were shown: value -> label."""
        return {
            v: human(k)
            for k, v in self.results()
            if isinstance(v, str) and CODE.fullmatch(v) and v != answer
        }

    def subject(self) -> str:
        """What the last call was about, as the user calls it."""
        for _, arguments, _ in reversed(self.talk.heard):
            if isinstance(arguments, dict):
                named = [v for v in arguments.values() if isinstance(v, str) and self.user_said(v)]
                if named:
                    return named[0]
        return "that"

    def last_tool(self) -> str:
        return human(self.talk.heard[-1][0]) if self.talk.heard else "the system"

    def both(self) -> tuple[str, str] | None:
        """The two values of a detail that the user has given twice."""
        for value in self.episode.ask_now.goal.values():
            if isinstance(value, tuple) and len(value) > 1:
                return str(value[0]), str(value[1])
        return None

    @property
    def plan(self) -> list[Any]:
        """The oracle's steps in a twin episode of the same scene."""
        if self._plan is None:
            twin = Episode(self.episode.scene, Budget(calls=200, turns=200))
            OracleAgent().play(twin)
            self._plan = list(twin.steps)
        return self._plan


class Style:
    """Plain: every act by its protocol tool, one call a turn. The twin of all the others."""

    name = "plain"
    patience = 3
    contested = ""
    solver = Solver

    def play(self, episode: Episode) -> None:
        self.desk = desk = StyleDesk(episode, self)
        try:
            while not episode.end:
                self.work(episode, desk)
        except Over:
            return

    def work(self, episode: Episode, desk: StyleDesk) -> None:
        solver = self.solver(desk, episode.scene.world.facts, episode.ask_now.goal)
        try:
            self.begin(desk)
            answer = episode.ask_now.solve(solver, solver.root)
        except Impossible as impossible:
            reason = impossible.reason
            desk.finish(lambda attempt: self.refuse(desk, reason, attempt))
        except Moved:
            return
        else:
            desk.finish(lambda attempt: self.answer(desk, answer, attempt))

    # -- the habits

    def begin(self, desk: StyleDesk) -> None:
        """Before any work on a request."""

    def call(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        return desk.talk.say(self.call_message(desk, name, arguments))[-1][2]

    def call_message(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        return message("", (name, arguments))

    def ask(self, desk: StyleDesk, slot: str, attempt: int) -> Any:
        facts = desk.episode.scene.world.facts
        return message("", ("ask_user", {"question": f"What is the {facts[slot].label}?"}))

    def answer(self, desk: StyleDesk, answer: str, attempt: int) -> Any:
        return message("", ("final_answer", {"answer": answer}))

    def refuse(self, desk: StyleDesk, reason: str, attempt: int) -> Any:
        return message("", ("refuse", {"reason": reason}))


# -- how an answer is worded -------------------------------------------------------------------

SENTENCES = (
    "Sure! The {label} you asked for is {code}.",
    "I found it: {code} is the {label}.",
    "All done. Your {label}: {code}",
    "Thanks for waiting. After checking the records, the {label} turned out to be {code}, as requested.",
    "Great news, I've got that for you! It's {code}.",
)


class Words(Style):
    """An answer as text made of the code; said through final_answer, or in prose."""

    prose = False
    forms: tuple[str, ...] = SENTENCES

    def spell(self, code: str) -> str:
        return code

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        form = desk.pick(self.forms, attempt)
        return form.format(label=desk.label(answer), code=self.spell(answer))

    def answer(self, desk: StyleDesk, answer: str, attempt: int) -> Any:
        text = self.text(desk, answer, attempt)
        return message(text) if self.prose else message("", ("final_answer", {"answer": text}))


class ChattySentence(Words):
    """Puts the code in a friendly sentence, in final_answer."""

    name = "chatty_sentence"


class ChattyProse(Words):
    """Never calls final_answer: the same friendly sentence as plain prose."""

    name, prose = "chatty_prose", True


class NonBreakingHyphen(Words):
    """Writes the code with U+2011, as many chat models and word processors do."""

    name = "nonbreaking_hyphen"

    def spell(self, code: str) -> str:
        return code.replace("-", "\u2011")


class NonBreakingHyphenProse(NonBreakingHyphen):
    """The same in prose: here the code as spelt was never shown, yet it is plainly an answer."""

    name, prose = "nonbreaking_hyphen_prose", True


class EnDash(Words):
    """Writes the code with an en dash, as autocorrection does."""

    name, prose = "en_dash", True

    def spell(self, code: str) -> str:
        return code.replace("-", "\u2013")


class Markdown(Words):
    """Sets the code in bold or in backticks, in prose."""

    name, prose = "markdown", True
    forms = (
        "The {label} is **{code}**.",
        "{label}: `{code}`",
        "### Result\n\n- **{label}**: `{code}`",
        "Here it is: **`{code}`** \u2705",
        "> {code}",
        "The {label} is __{code}__.",
        "The {label} is *{code}*",
    )


class MarkdownTool(Markdown):
    """The same through final_answer."""

    name, prose = "markdown_tool", False


class Boxed(Words):
    """Ends as it was trained to on other benchmarks: boxed, tagged, or 'Final answer:'."""

    name, prose = "boxed", True
    forms = (
        "The lookup gave me what is needed. $\\boxed{{{code}}}$",
        "<answer>{code}</answer>",
        "I read the {label} off the last result.\n\nFinal answer: {code}",
        "**Final Answer**\n\n\\boxed{{\\text{{{code}}}}}",
    )


class Spaced(Words):
    """Spells the code with spaces around the hyphen, or a space in its place, to be read out."""

    name = "spaced"

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        spelt = answer.replace("-", desk.pick((" - ", " ")))
        return f"The {desk.label(answer)} is {spelt}."


class Lower(Words):
    """Writes everything in lower case, the code as well."""

    name = "lower_case"

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        return f"it's {answer}".lower()


class BareLower(Words):
    """The bare code in lower case, nothing else."""

    name = "bare_lower_case"

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        return answer.lower()


class NamesIdentifiers(Words):
    """Names the identifiers met on the way, each with its label, then the code with its own."""

    name = "names_identifiers"

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        way = ", ".join(f"{label} {value}" for label, value in desk.idents(answer))
        label = desk.label(answer)
        forms = (
            f"{way[:1].upper()}{way[1:]}, the {label} is {answer}.",
            f"Looked up {way}. {label.capitalize()}: {answer}",
            f"The {label} is {answer} ({way}).",
        )
        return str(desk.pick(forms, attempt)) if way else f"The {label} is {answer}."


class NamesIdentifiersProse(NamesIdentifiers):
    """The same in prose."""

    name, prose = "names_identifiers_prose", True


class NamesCodesOnTheWay(Words):
    """Names another code on the way with its label ('cleared under X; the prescription ... is Y').

    It is plain to a reader which one is the answer. measures.md: 'no other code', so a documented
    failure.
    """

    name, prose = "names_codes_on_the_way", True
    contested = "measures.md: an answer counts if it states the expected code and no other code"

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        others = list(desk.codes(answer).items())[:1]
        label = desk.label(answer)
        if not others:
            return f"The {label} is {answer}."
        code, other = others[0]
        forms = (
            f"The {other} was {code}. The {label} you asked for is {answer}.",
            f"Done, with {other} {code} on file. Your {label}: {answer}.",
        )
        return str(desk.pick(forms, attempt))


class JsonInProse(Words):
    """A short line and a JSON object with what was asked, in a code fence or not."""

    name, prose = "json_in_prose", True

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        rows = {k.replace(" ", "_"): v for k, v in desk.idents(answer, 2)}
        held = {"status": "success", **rows, desk.key(answer): answer}
        forms = (
            f"Here is the result:\n```json\n{json.dumps(held, indent=2)}\n```",
            json.dumps({"answer": answer}),
            f"Result: {json.dumps({desk.key(answer): answer})}",
        )
        return str(desk.pick(forms, attempt))


class JsonInTool(JsonInProse):
    """The JSON object as the answer of final_answer."""

    name, prose = "json_in_tool", False


class Table(Words):
    """A small Markdown table with the identifiers and the code."""

    name, prose = "table", True

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        rows = [*desk.idents(answer, 2), (desk.label(answer), answer)]
        body = "\n".join(f"| {label} | {value} |" for label, value in rows)
        return f"Here you go:\n\n| Item | Value |\n|---|---|\n{body}\n"


class FollowUp(Words):
    """Answers in prose and offers more help, in several wordings, some with a question mark."""

    name, prose = "follow_up", True
    forms = (
        "The {label} is {code}. Anything else?",
        "Your {label} is {code}. Is there anything else I can help you with today?",
        "{code} is the {label}. Let me know if you need anything more!",
        "Here's the {label}: {code}. Need something else?",
        "It's {code}. Would you like me to look up anything further?",
        "The {label} is {code}. Shall I e-mail it to you as well?",
        "The {label} is {code}. Does that help?",
        "That would be {code}. What else can I do for you?",
    )


class FollowUpTool(FollowUp):
    """The same through final_answer."""

    name, prose = "follow_up_tool", False


class NonNative(Words):
    """A competent agent whose English is not native; answers, refuses and asks in prose."""

    name, prose = "non_native", True
    forms = (
        "Hello, I have made the search and the {label} what you want it is {code}.",
        "So, I found. {label} is being {code}. Thank you for patience.",
        "Dear, please find the {label} at follow: {code}",
        "I could to get the {label}, here is: {code} .",
    )

    def refuse(self, desk: StyleDesk, reason: str, attempt: int) -> Any:
        return message(fill(desk, desk.pick(NON_NATIVE_REFUSALS[reason], attempt)))

    def ask(self, desk: StyleDesk, slot: str, attempt: int) -> Any:
        label = desk.episode.scene.world.facts[slot].label
        both = desk.episode.ask_now.goal.get(slot)
        if isinstance(both, tuple):
            return message(
                f"You have said {both[0]} and also {both[1]}, which one is the good {label}?"
            )
        forms = (
            "Please, you can say me the {label}?",
            "I am needing the {label}. Which is it please?",
            "What is {label}, please?",
        )
        return message(str(desk.pick(forms, attempt)).format(label=label))


NON_NATIVE_REFUSALS = {
    "service_failure": (
        "I am sorry, the service it is broken and does not come back, so is not possible for me to do this.",
        "The system gave always error. I tried many time, cannot finish it.",
        "Sorry but the server is not working no more, I can not give you the reference.",
        "It is failing the backend definitive, therefore I must to stop.",
    ),
    "tool_unavailable": (
        "Sorry, the function what I need was removed and I have not other one for make it.",
        "This tool is not existing anymore, I can not continue the task.",
        "They have took away the tool in the middle, without it is impossible for me.",
        "I do not dispose of the function for this. So I can not.",
    ),
    "contradictory_request": (
        "You say two different thing and both must be, this I can not do.",
        "The informations are in contradiction, I not can know which one is correct.",
        "It is not possible to do because {a} and {b} in same time can not be.",
        "Your request contradict himself, sorry, I must stop here.",
    ),
    "not_found": (
        "I did search but {x} is not existing in our system, sorry.",
        "There is not such {x} in the database.",
        "I have not found nothing with this name.",
        "Sorry, {x} I can not find, it is not registered.",
    ),
}


class ThinkTags(Words):
    """A reasoning model behind an endpoint that leaves <think> in the content; thinks of others."""

    name, prose = "think_tags", True
    contested = "the docs say nothing of <think>; with another code in it, 'no other code' fails it"

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        others = "; ".join(
            f"{label} = {code}" for code, label in list(desk.codes(answer).items())[:2]
        )
        label = desk.label(answer)
        return (
            f"<think>\nThe results contain {others or 'one code'}. The user wants the {label}, so that "
            f"is {answer}.\n</think>\n\nThe {label} is {answer}."
        )


class ContentParts(ChattyProse):
    """Prose as a list of content parts, as several endpoints send it."""

    name = "content_parts"

    def answer(self, desk: StyleDesk, answer: str, attempt: int) -> Any:
        text = self.text(desk, answer, attempt)
        cut = text.index(answer)
        parts = [{"type": "text", "text": piece} for piece in (text[:cut], text[cut:])]
        return message(parts)


# -- further codes beside the answer, and codes spelt for ears and browsers -----------------------


class BesideOthers(Words):
    """Names the answer, and beside it other codes of the record, each as what it is."""

    prose, most = True, 2
    alone: tuple[str, ...] = ("The {label} is {code}.",)  # where no other code was shown

    def others(self, desk: StyleDesk, answer: str) -> list[tuple[str, str]]:
        """Other codes as (label, code), those of the answer's own label left out."""
        found = [(label, code) for code, label in reversed(desk.codes(answer).items())]
        return [one for one in found if one[0] != desk.label(answer)][: self.most]

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        others = self.others(desk, answer)
        forms = self.forms if others else self.alone
        listed = ", ".join(f"{label} {code}" for label, code in others)
        rows = "\n".join(f"- {label}: {code}" for label, code in others)
        first = others[0] if others else ("", "")
        return str(desk.pick(forms, attempt)).format(
            label=desk.label(answer),
            code=answer,
            listed=listed,
            rows=rows,
            other=first[0],
            wrong=first[1],
            name=desk.subject(),
        )


class ListsTheRestApart(BesideOthers):
    """States the answer, then lists the rest of the record as such."""

    name = "lists_the_rest_apart"
    forms = (
        "The {label} is {code}. Others: {listed}.",
        "{label}: {code}\n\nThe record also has {listed}.",
        "It's {code}. (Also on file: {listed}.)",
        "The {label} you need is {code}. Remaining codes of that entry: {listed}.",
        "I got the {label}, {code}. Besides it the result showed {listed}.",
        "{code} is the {label}.\n\nFurther codes:\n{rows}",
    )


class WarnsOfAMixUp(BesideOthers):
    """Says which code the answer is easily taken for."""

    name, most = "warns_of_a_mix_up", 1
    forms = (
        "The {label} is {code}, not to be confused with the {other} {wrong}.",
        "The {label} is {code}. Please do not mistake the {other}, {wrong}, for it.",
        "{code} is the {label}; {wrong} is only the {other}.",
        "Take {code}. The {other} ({wrong}) is for something else.",
        "You want {code}, as opposed to the {other} {wrong}.",
        "Don't mix it up with the {other} {wrong}: the {label} is {code}.",
    )


class CorrectsItself(BesideOthers):
    """Names another code first, notices it, and takes it back."""

    name, most = "corrects_itself", 1
    forms = (
        "It's {wrong}. Wait, no, that's the {other}, not what you wanted. The right one is {code}.",
        "{wrong}. Oops, that was the {other}. The {label} is {code}.",
        "First I had {wrong} in mind, but that is the {other}. Your {label} is {code}.",
        "The {label} is {wrong}... sorry, no. That is the {other}. The {label} is {code}.",
    )


class ForTheRecords(BesideOthers):
    """Adds a code that nobody asked for, for the user's records."""

    name, most = "for_the_records", 1
    forms = (
        "Your {label} is {code}. For your records: the {other} is {wrong}.",
        "The {label} is {code}. In case you ever need it, your {other} is {wrong}.",
        "The {label} you asked for is {code}. FYI, the {other} is {wrong}.",
        "{label}: {code}\n\nPS: the {other} is {wrong}, should anybody ask.",
        "I found the {label}: {code}. By the way, your {other} reads {wrong}.",
    )


class SaysHowItChecked(BesideOthers):
    """Says by which other code it made sure that it had the right record."""

    name, most = "says_how_it_checked", 1
    forms = (
        "The {label} is {code}. I checked the record against the {other} {wrong}.",
        "The {label} is {code} (verified with the {other}, {wrong}).",
        "Matched by its {other} {wrong}, the entry has the {label} {code}.",
        "First I came across {wrong}, but that is the {other}. The {label} is {code}.",
        "I compared it with the {other} {wrong} to be sure: the {label} is {code}.",
    )


class ReportsThenAnswers(BesideOthers):
    """A report of what was found on the way, and the answer at its end."""

    name, most = "reports_then_answers", 9
    forms = (
        "Found on the way:\n{rows}\n\n**Your {label}: {code}**",
        "The lookup returned several codes.\n{rows}\n\nThe one you asked for, the {label}, is {code}.",
        "Related codes:\n{rows}\n\nFinal answer: {code}",
    )


class AnswerWithDetails(BesideOthers):
    """A JSON object whose answer stands apart from its details."""

    name, most = "answer_with_details", 2

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        details = {label.replace(" ", "_"): code for label, code in self.others(desk, answer)}
        held = {"answer": answer, "details": details} if details else {"answer": answer}
        return json.dumps(held, indent=desk.pick((None, 2), attempt))


class SaysItTwice(Words):
    """Says the code twice, the second time to be copied."""

    name, prose = "says_it_twice", True
    forms = (
        "The {label} is {code}. To copy: {code}",
        "{code}\n\nThat is the {label}. Again: {code}.",
        "Your {label} is {code} (`{code}`).",
    )


class NegationsAround(Words):
    """Denies other things in the same breath: trouble, further codes, doubt."""

    name, prose = "negations_around", True
    forms = (
        "It was not easy to find, but the {label} is {code}.",
        "Nothing else matched, so the {label} is {code}.",
        "There is no doubt that the {label} is {code}.",
        "I could not see any other code for it: {code} is the {label}.",
        "Since the first lookup didn't fail I had no need to retry; the {label} is {code}.",
        "The {label} is {code}. No other record had that name, and nothing went wrong.",
        "{code} is the {label}, and it isn't outdated.",
        "The {label} can't be anything but {code}.",
    )


class Cautious(Words):
    """Commits to one code with the caution of a careful clerk."""

    name, prose = "cautious", True
    forms = (
        "I believe the {label} is {code}.",
        "As far as I can tell from the record, the {label} is {code}.",
        "It should be {code}. Let me know if it doesn't work for you.",
        "The {label} appears to be {code}.",
        "According to the latest result the {label} is {code}; please double-check if in doubt.",
    )


class SpelledAloud(Words):
    """Spells the code letter by letter, as a voice assistant does."""

    name, prose = "spelled_aloud", False
    digits = dict(
        zip(
            "23456789",
            ["two", "three", "four", "five", "six", "seven", "eight", "nine"],
            strict=True,
        )
    )

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        letters = answer.replace("-", "")
        spoken = [self.digits.get(letter, letter) for letter in letters]
        forms = (
            " dash ".join(letters),
            " ".join(letters[:4]) + ", dash, " + " ".join(letters[4:]),
            " ".join(spoken[:4]) + " hyphen " + " ".join(spoken[4:]),
            ", ".join(letters[:4]) + " - " + ", ".join(letters[4:]),
            "-".join(letters),
            " minus ".join((" ".join(letters[:4]).lower(), " ".join(letters[4:]).lower())),
        )
        return f"The {desk.label(answer)} is {desk.pick(forms, attempt)}."


class SpelledAloudProse(SpelledAloud):
    """The same in prose."""

    name, prose = "spelled_aloud_prose", True


class HtmlEntities(Words):
    """Writes for a browser: entities for the hyphen and the spaces."""

    name, prose = "html_entities", True
    hyphens = ("&#45;", "&ndash;", "&#x2011;", "&#8209;", "&hyphen;", "&minus;", "&#8288;-")

    def spell(self, code: str) -> str:
        return code.replace("-", "&#45;")

    def text(self, desk: StyleDesk, answer: str, attempt: int) -> str:
        spelt = answer.replace("-", desk.pick(self.hyphens, attempt))
        form = desk.pick(("The {label} is&nbsp;{code}.", "<p>{label}: <b>{code}</b></p>"), attempt)
        return str(form).format(label=desk.label(answer), code=spelt)


class HtmlEntitiesTool(HtmlEntities):
    """The same through final_answer."""

    name, prose = "html_entities_tool", False


# -- how a refusal is worded -------------------------------------------------------------------

REFUSALS = {
    "service_failure": (
        "The lookup keeps erroring out on the server side, so there's nothing I can give you right now.",
        "Unfortunately the backend is down for good: every attempt ended in the same error, and I have no other way to get at this.",
        "I had to stop here. The service behind {tool} has failed permanently and nothing else offers that information.",
        "No luck, I'm afraid. The system that would issue this is broken and says retrying is pointless.",
        "I wasn't able to complete this because the provider's system returned an unrecoverable error.",
        "This one is out of my hands: {tool} has been decommissioned on their end and won't answer any more.",
    ),
    "tool_unavailable": (
        "The tool I would need for this was withdrawn while I was working, so I have to leave it undone.",
        "Halfway through, the function for that last step disappeared from my toolbox; without it there is no way to finish.",
        "I no longer have access to the function that does this, so this can't be completed.",
        "That capability has been taken away from me and none of the remaining tools covers it. I have to stop.",
        "Sorry to say, the feature I was relying on has just been removed without a replacement.",
        "I'm missing the tool for this: it was pulled a moment ago and nothing left on the list does the same job.",
    ),
    "contradictory_request": (
        "You've given me two different values for the same thing and confirmed both, so I don't know which to follow and won't guess.",
        "The request contradicts itself: it can't be {a} and {b} at once. Until that is settled I can't go ahead.",
        "{a} and {b} rule each other out, so there is no way to do what was asked.",
        "I've left everything untouched, because what you want is {a} and also {b}, and only one of those can be true.",
        "These requirements are incompatible with one another, so I'm going to stop here.",
    ),
    "not_found": (
        "I looked, but there's no {x} on record, so there's no code to give you.",
        "Nothing by that name exists in the system.",
        "The directory doesn't know {x}; I checked the spelling you gave me and came up empty.",
        "I've searched for {x} and come up with nothing: whatever it is, it isn't registered here.",
        "{x} doesn't seem to exist, so I can't look anything up for it.",
        "I was unable to locate {x}.",
    ),
}


def fill(desk: StyleDesk, text: str) -> str:
    """A wording with what it is about."""
    a, b = desk.both() or ("the one", "the other")
    text = text.format(x=desk.subject(), tool=desk.last_tool(), a=a, b=b)
    return text[:1].upper() + text[1:]


class RefusesInProse(Style):
    """Answers by the protocol, refuses in prose in words of its own."""

    name = "refuses_in_prose"

    def refuse(self, desk: StyleDesk, reason: str, attempt: int) -> Any:
        return message(fill(desk, desk.pick(REFUSALS[reason], attempt)))


class RefusesWithOffer(Style):
    """Apologises, refuses in prose, and offers what it could do instead."""

    name = "refuses_with_offer"
    sorry = (
        "I'm really sorry about this. ",
        "My apologies! ",
        "I'm afraid I have bad news. ",
        "Sorry for the inconvenience. ",
    )
    offers = (
        " If you like, I can try again later.",
        " Would you like me to check something else instead?",
        " Do let me know if there is anything else you need.",
        " Please contact support if this keeps happening.",
        " I'd be happy to help with another request, though.",
        " Shall I notify a colleague?",
        " Can I do anything else for you?",
    )

    def refuse(self, desk: StyleDesk, reason: str, attempt: int) -> Any:
        body = fill(desk, desk.pick(REFUSALS[reason], attempt))
        sorry = self.sorry[(desk.number // 7 + attempt) % len(self.sorry)]
        offer = self.offers[(desk.number // 31 + attempt) % len(self.offers)]
        return message(sorry + body + offer)


class RefusesWithQuotedError(Style):
    """Refuses in prose and quotes the error, or the notice, word for word."""

    name = "refuses_quoting_error"

    def refuse(self, desk: StyleDesk, reason: str, attempt: int) -> Any:
        said = ""
        if desk.talk.heard and reason != "contradictory_request":
            text, result = desk.talk.heard[-1][2]
            said = result.notice or (result.data["error"]["message"] if not result.ok else "")
        if not said:
            return message(fill(desk, desk.pick(REFUSALS[reason], attempt)))
        forms = (
            f'I could not finish this. The last thing the system told me was: "{said}"',
            f"This is where it stops, I'm afraid; {human(desk.talk.heard[-1][0])} came back with `{said}`",
            f"I can't fulfil your request: {said}",
        )
        return message(desk.pick(forms, attempt))


class RefusesQuotingCode(Style):
    """Refuses in prose and reports how far it got, a code of the way among it, labelled."""

    name = "refuses_quoting_code"
    contested = "measures.md: a message that states a code which was shown is an answer"

    def refuse(self, desk: StyleDesk, reason: str, attempt: int) -> Any:
        body = fill(desk, desk.pick(REFUSALS[reason], attempt))
        way = next(((label, code) for code, label in desk.codes().items()), None)
        return message(f"{body} I did get as far as the {way[0]}, {way[1]}." if way else body)


class RefusesWithWords(Style):
    """Calls refuse, explains itself beside the call and in an extra argument of it."""

    name = "refuses_with_words"

    def refuse(self, desk: StyleDesk, reason: str, attempt: int) -> Any:
        words = fill(desk, desk.pick(REFUSALS[reason], attempt))
        return message(words, ("refuse", {"reason": reason, "explanation": words}))


# -- how questions are asked -------------------------------------------------------------------

ASKS = {
    "city": ("Which city is that in?", "Where is this, which town?", "Could you tell me what city we're talking about?", "And whereabouts is it?"),
    "category": ("What kind of venue are you after?", "What sort of place should it be?", "Should I look at museums, cafes, parks or something else?"),
    "place_name": ("Which place do you mean?", "What's it called?", "Could you give me its name?", "Which venue exactly?"),
    "other_name": ("What is the other one called?", "And which one should I compare it with?", "What's the second place?"),
    "day": ("Which day are you going?", "On what day of the week?", "For which weekday do you need it?", "When do you plan to be there?"),
    "origin": ("Where will you be starting out?", "From where would you be travelling?", "What's your starting point?", "Where do you set off from?"),
    "slot_time": ("What time suits you?", "At what time should it be?", "Which time slot would you like?", "At what hour do you want to come?"),
    "party_size": ("How many of you will there be?", "For how many people?", "How big is your group?", "How many guests should I put down?"),
    "patient_name": ("Who is the patient?", "What is the patient called?", "Which patient is this about?", "May I have the patient's full name?"),
    "birth_date": ("When was the patient born?", "What's their date of birth?", "Could I get the DOB?", "And the birthday?"),
    "specialty": ("What kind of specialist do they need?", "Which department is this for?", "Which specialty should I refer to?", "Cardiology, neurology, or something else?"),
    "clinic": ("Which clinic?", "Where should they be seen?", "At which hospital?", "Which site should they go to?"),
    "other_clinic": ("Which clinic should I compare it with?", "What's the other clinic?", "And the second option for the clinic?"),
    "medication": ("Which drug is it?", "What medication should I check?", "What are we giving them?", "Which medicine do you mean?"),
    "dose": ("At what dose?", "How many milligrams?", "What strength should I prescribe?", "How much of it?"),
    "test": ("Which test are you after?", "Which lab panel do you mean?", "What was measured?"),
    "weight_limit": ("What's the cut-off weight?", "Above how many kilos?", "Which weight should I compare with?", "What is the threshold?"),
    "customer_name": ("Who is the customer?", "What name is the account under?", "Whose order is this?", "Which customer are we talking about?"),
    "parcel_no": ("What's the parcel number?", "Do you have the tracking number?", "Which parcel is it?", "What number is on the package?"),
    "other_product": ("What's the other item?", "Which product should I compare it with?", "And the second product?"),
    "product_name": ("Which product is it?", "What item do you mean?", "What is the article called?", "What should I look for in the catalogue?"),
    "quantity": ("How many do you need?", "How many units should I set aside?", "What quantity?", "How many pieces?"),
    "payout": ("How would you like the money back?", "How should the refund be paid?", "Which payout method do you prefer?", "Card, voucher or bank transfer?"),
}  # fmt: skip
BOTH = (
    "You mentioned both {a} and {b}; which one is it?",
    "I have {a} as well as {b} for the {label}. Which should I go with?",
    "Just to be sure: {a} or {b}?",
    "There seem to be two versions here, {a} and {b}. Which of them is right?",
)
NEEDS = (
    "I still need the {label} before I can go on.",
    "Please let me know the {label}.",
    "To look this up I'd have to know the {label}, which your message doesn't say.",
    "Could you provide the {label}?",
)


def question(desk: StyleDesk, slot: str, attempt: int) -> str:
    """A question for a slot in own words."""
    label = desk.episode.scene.world.facts[slot].label
    both = desk.episode.ask_now.goal.get(slot)
    if isinstance(both, tuple):
        return str(desk.pick(BOTH, attempt)).format(a=both[0], b=both[1], label=label)
    return str(desk.pick(ASKS.get(slot, (f"What is the {label}?",)), attempt))


class AsksOwnWords(Style):
    """Asks through ask_user in words of its own; asks again in others where not understood."""

    name = "asks_own_words"

    def ask(self, desk: StyleDesk, slot: str, attempt: int) -> Any:
        return message("", ("ask_user", {"question": question(desk, slot, attempt)}))


class AsksOnce(AsksOwnWords):
    """The same, and gives up (a refusal) where its first wording is not understood."""

    name, patience = "asks_own_words_once", 1


class AsksInProse(Style):
    """Asks in prose, without ask_user; politely, and at times without a question mark."""

    name = "asks_in_prose"
    leads = ("Before I start: ", "Happy to help! ", "One thing first. ", "Sure thing. ", "")

    def ask(self, desk: StyleDesk, slot: str, attempt: int) -> Any:
        label = desk.episode.scene.world.facts[slot].label
        lead = self.leads[(desk.number // 3 + attempt) % len(self.leads)]
        torn = isinstance(desk.episode.ask_now.goal.get(slot), tuple)
        if not torn and (desk.number // 5 + attempt) % 3 == 0:
            return message(lead + str(desk.pick(NEEDS, attempt)).format(label=label))
        return message(lead + question(desk, slot, attempt))


class AsksWithReason(Style):
    """A question in prose with its reason and a thank-you behind it, so not at the very end."""

    name = "asks_with_reason"

    def ask(self, desk: StyleDesk, slot: str, attempt: int) -> Any:
        forms = (
            "I can look that up for you. {q} I need it to find the right record. Thanks!",
            "{q} Once I know that I can get going.",
            "Quick question: {q} (It isn't in your message.)",
        )
        return message(str(desk.pick(forms, attempt)).format(q=question(desk, slot, attempt)))


class AsksAllAtOnce(Style):
    """Asks for everything that is missing in one question, through ask_user."""

    name = "asks_all_at_once"

    def ask(self, desk: StyleDesk, slot: str, attempt: int) -> Any:
        goal, facts = desk.episode.ask_now.goal, desk.episode.scene.world.facts
        missing = [
            s
            for s, v in goal.items()
            if s in facts and (s == slot or isinstance(v, tuple) or not desk.user_said(v))
        ]
        if attempt or len(missing) == 1:
            return message("", ("ask_user", {"question": question(desk, slot, attempt)}))
        labels = [facts[s].label for s in missing]
        text = f"I need a few details first: what are the {', the '.join(labels[:-1])} and the {labels[-1]}?"
        return message("", ("ask_user", {"question": text}))


class ConfirmsWrites(Style):
    """Asks before every write whether it shall go ahead, by ask_user, and then does it."""

    name = "confirms_writes"
    prose = False

    def call(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        tool = desk.tool(name)
        if tool is not None and tool.effect == "write":
            what = ", ".join(f"{human(k)} {v}" for k, v in arguments.items())
            forms = (
                "Shall I go ahead with {n} ({w})?",
                "I'm about to {n}: {w}. OK to proceed?",
                "Ready to {n} with {w}. Please confirm.",
            )
            text = str(desk.pick(forms)).format(n=human(name), w=what)
            desk.talk.say(
                message(text) if self.prose else message("", ("ask_user", {"question": text}))
            )
        return super().call(desk, name, arguments)


class ConfirmsWritesProse(ConfirmsWrites):
    """The same in prose, as most chat agents do; names the arguments, a clearance code among them."""

    name, prose = "confirms_writes_prose", True
    contested = "measures.md: a message that states a shown code is an answer, even one that asks"


class AnnouncesFirst(Style):
    """Says 'Let me look that up' in a message without a call, and then sets to work."""

    name = "announces_first"
    contested = "measures.md: anything else is an answer, so an announcement alone ends the request"

    def begin(self, desk: StyleDesk) -> None:
        asked = desk.episode.asked
        desk.talk.say(
            message(desk.pick(("Let me look that up for you.", "One moment please, I'm checking.")))
        )
        if desk.episode.asked != asked:
            desk.misread += 1
            raise Moved


# -- how the work is done ----------------------------------------------------------------------


def fillable(desk: StyleDesk) -> list[tuple[str, dict[str, Any]]]:
    """Reads on offer whose arguments the user has given or a result has shown."""
    known = {
        s: v
        for s, v in desk.episode.ask_now.goal.items()
        if not isinstance(v, tuple) and desk.user_said(v)
    }
    for _, _, (_, result) in desk.talk.heard:
        if result.ok and isinstance(result.data, dict):
            for field in result.fields:
                value: Any = result.data
                for key in field.path:
                    value = value.get(key) if isinstance(value, dict) else None
                if isinstance(value, str):
                    known.setdefault(field.fact, value)
    made = {(n, json.dumps(a, sort_keys=True)) for n, a, _ in desk.talk.heard}
    found = []
    for tool in desk.episode.tools:
        if tool.effect != "read" or not all(p.fact in known for p in tool.params if p.required):
            continue
        arguments = {p.name: known[p.fact] for p in tool.params if p.required}
        if (tool.name, json.dumps(arguments, sort_keys=True)) not in made:
            found.append((tool.name, arguments))
    return found


class ExtraReads(Style):
    """Looks around first: a few harmless reads that the task does not need, before and amid it."""

    name = "extra_reads"
    most = 4

    def begin(self, desk: StyleDesk) -> None:
        planned = [(s.name, s.arguments) for s in desk.plan if s.kind == "call"]
        for name, arguments in fillable(desk)[:2]:
            if desk.extra < self.most and (name, arguments) not in planned:
                desk.extra += 1
                desk.talk.say(message("", (name, arguments)))

    def call(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        shown = super().call(desk, name, arguments)
        planned = [(s.name, s.arguments) for s in desk.plan if s.kind == "call"]
        others = [one for one in fillable(desk) if one not in planned]
        if shown[1].ok and not shown[1].hint and others and desk.extra < self.most:
            desk.extra += 1
            desk.talk.say(message("", desk.pick(others)))
        return shown


class RepeatsReads(Style):
    """Makes every read twice, to be sure."""

    name = "repeats_reads"

    def call(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        tool = desk.tool(name)
        shown = super().call(desk, name, arguments)
        if (
            tool is None
            or tool.effect != "read"
            or not shown[1].ok
            or shown[1].hint
            or desk.tool(name) is None
        ):
            return shown
        again = super().call(desk, name, arguments)
        return again if again[1].ok and not again[1].hint else shown


class ChecksAfterWrite(Style):
    """After a write, reads the record again to see that it is there."""

    name = "checks_after_write"

    def call(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        tool = desk.tool(name)
        before = [
            (n, a)
            for n, a, (_, r) in desk.talk.heard
            if r.ok and desk.tool(n) and desk.tool(n).effect == "read"
        ]
        shown = super().call(desk, name, arguments)
        if (
            tool is not None
            and tool.effect == "write"
            and shown[1].ok
            and not shown[1].hint
            and before
        ):
            desk.talk.say(message("Let me double-check.", before[-1]))
        return shown


class Parallel(Style):
    """Makes independent reads together, in one message."""

    name = "parallel_calls"
    together = 0

    def call(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        if desk.ahead:
            ready = desk.ahead.pop(0)
            if ready[:2] == (name, arguments):
                return ready[2]
            desk.ahead.clear()
        group = [(name, arguments), *self.further(desk, name, arguments)]
        heard = desk.talk.say(message("", *group))
        self.together += len(group) > 1
        desk.ahead = list(heard[1:])
        return heard[0][2]

    def further(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> list[Any]:
        plan, shown = desk.plan, {t.name: t for t in desk.episode.tools}
        calls = [place for place, step in enumerate(plan) if step.kind == "call"]
        if desk.position >= len(calls):
            return []
        place, found = calls[desk.position], []
        if (plan[place].name, plan[place].arguments) != (name, arguments):
            return []
        while place + 1 < len(plan):
            now, following = plan[place], plan[place + 1]
            if not now.ok or now.hint or now.tools or following.kind != "call":
                break
            tool = shown.get(following.name)
            if tool is None or tool.effect != "read" or shown[now.name].effect != "read":
                break
            if not all(desk.was_shown(v) for v in following.arguments.values()):
                break
            found.append((following.name, following.arguments))
            place += 1
        return found


class ThinksAloud(Style):
    """Says beside every call what it is thinking, also beside final_answer, ask_user and refuse."""

    name = "thinks_aloud"

    def call_message(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        last = (
            f"The last result was {desk.talk.heard[-1][2][0]!r:.160}. " if desk.talk.heard else ""
        )
        return message(
            f"{last}Next I need {human(name)}, so I'll call it now. Is that right? I think so.",
            (name, arguments),
        )

    def ask(self, desk: StyleDesk, slot: str, attempt: int) -> Any:
        said = super().ask(desk, slot, attempt)
        return {
            **said,
            "content": "The user did not say this clearly. I had better ask and not guess.",
        }

    def answer(self, desk: StyleDesk, answer: str, attempt: int) -> Any:
        others = ", ".join(desk.codes(answer)) or "none"
        return message(
            f"Other codes I saw were {others}; the one wanted is {answer}. I cannot see any doubt.",
            ("final_answer", {"answer": answer}),
        )

    def refuse(self, desk: StyleDesk, reason: str, attempt: int) -> Any:
        others = ", ".join(desk.codes()) or "none"
        return message(
            f"The codes seen so far ({others}) are not what was asked. Time to stop.",
            ("refuse", {"reason": reason}),
        )


class DictArguments(Style):
    """Passes arguments as objects, not as JSON text, and leaves out type and id of a call."""

    name = "dict_arguments"

    def _bare(self, name: str, arguments: dict[str, Any]) -> Any:
        return {
            "content": None,
            "tool_calls": [{"function": {"name": name, "arguments": arguments}}],
        }

    def call_message(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        return self._bare(name, arguments)

    def answer(self, desk: StyleDesk, answer: str, attempt: int) -> Any:
        return self._bare("final_answer", {"answer": answer})

    def refuse(self, desk: StyleDesk, reason: str, attempt: int) -> Any:
        return self._bare("refuse", {"reason": reason})


class PrettyArguments(Style):
    """JSON text with line breaks, indents, and every letter beyond ASCII escaped; keys reversed."""

    name = "pretty_arguments"

    def call_message(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        held = dict(reversed(list(arguments.items())))
        return message("", (name, "\n" + json.dumps(held, indent=4, ensure_ascii=True) + "\n"))


class OtherNumbers(Style):
    """Writes whole numbers as 4.0, which JSON Schema takes for an integer."""

    name = "whole_numbers_as_floats"

    def call_message(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        def spelt(v: Any) -> Any:
            return float(v) if isinstance(v, (int, float)) and not isinstance(v, bool) else v

        return message("", (name, {k: spelt(v) for k, v in arguments.items()}))


class NumbersAsStrings(Style):
    """Passes numbers as strings; where the schema does not allow it, it is told so and corrects."""

    name = "numbers_as_strings"

    def call(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        texts = {k: str(v) if isinstance(v, (int, float)) else v for k, v in arguments.items()}
        shown = desk.talk.say(message("", (name, texts)))[-1][2]
        if (
            texts != arguments
            and not shown[1].ok
            and shown[1].data["error"]["code"] == "invalid_arguments"
        ):
            shown = desk.talk.say(message("", (name, arguments)))[-1][2]
        return shown


class ExplicitOptionals(Style):
    """Passes every optional argument explicitly, with a value that its schema allows."""

    name = "explicit_optionals"
    filled = 0

    def call_message(self, desk: StyleDesk, name: str, arguments: dict[str, Any]) -> Any:
        tool, more = desk.tool(name), {}
        for param in tool.params if tool else ():
            noise = param.fact not in desk.episode.scene.world.facts  # not a filter that matters
            if not param.required and param.name not in arguments and noise:
                value = _allowed(param.schema)
                if value is not None:
                    more[param.name] = value
                    self.filled += 1
        return message("", (name, {**arguments, **more}))


def _allowed(schema: dict[str, Any]) -> Any:
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    return {
        "string": None if "pattern" in schema else "none",
        "boolean": False,
        "object": {},
        "array": [],
    }.get(kind)


STYLES: tuple[type[Style], ...] = (
    Style, ChattySentence, ChattyProse, NonBreakingHyphen, NonBreakingHyphenProse, EnDash, Markdown,
    MarkdownTool, Boxed, Spaced, Lower, BareLower, NamesIdentifiers, NamesIdentifiersProse,
    NamesCodesOnTheWay, JsonInProse, JsonInTool, Table, FollowUp, FollowUpTool, NonNative, ThinkTags,
    ContentParts, RefusesInProse, RefusesWithOffer, RefusesWithQuotedError, RefusesQuotingCode,
    RefusesWithWords, AsksOwnWords, AsksOnce, AsksInProse, AsksWithReason, AsksAllAtOnce,
    ConfirmsWrites, ConfirmsWritesProse, AnnouncesFirst, ExtraReads, RepeatsReads, ChecksAfterWrite,
    Parallel, ThinksAloud, DictArguments, PrettyArguments, OtherNumbers, NumbersAsStrings,
    ExplicitOptionals, ListsTheRestApart, WarnsOfAMixUp, CorrectsItself, ForTheRecords, SaysHowItChecked,
    ReportsThenAnswers, AnswerWithDetails, SaysItTwice, NegationsAround, Cautious, SpelledAloud,
    SpelledAloudProse, HtmlEntities, HtmlEntitiesTool,
)  # fmt: skip
BY_NAME = {style.name: style for style in STYLES}
