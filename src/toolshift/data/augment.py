"""Perturbation-augmented data: a share of anyone's conversations, shifted through the layers.

    recipe = Recipe(alpha=0.3)
    made = augmented(row, recipe)              # rows to train on in place of this one, and why

Every choice is derived from the content of a row, so the same seed gives the same bytes whatever
the order of the rows or the number of workers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from random import Random
from typing import Any, NamedTuple

import msgspec

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.core.scene import Stack
from toolshift.core.shift import SEVERITIES, NotApplicable, split_version
from toolshift.data.conversation import (
    PARAMETERS,
    Conversation,
    Format,
    Message,
    Row,
    RowFault,
    ToolShown,
    portable,
)
from toolshift.data.conversation import told as said_in
from toolshift.data.flow import NO_FLOW, flow_of
from toolshift.data.formats import FORMATS, read_as, recognised
from toolshift.data.formats.adp import ADP_ROWS, without_tools
from toolshift.data.formats.of_dialects import GEMINI_ROWS
from toolshift.data.formats.prompt_completion import PROMPT_COMPLETION_ROWS, without_sides
from toolshift.data.formats.responses import RESPONSES_ROWS, without_items
from toolshift.data.formats.schemas import strict_fault
from toolshift.data.interface_texts import check_language
from toolshift.data.listed_twice import ListedTwice
from toolshift.data.prepared import NONE_CALLED, Prepared, called, needed_by, on_offer, prepared
from toolshift.data.refusal_rows import check_alone, ending_of
from toolshift.data.replay import check, replay
from toolshift.data.tools import Lent, apart, check_gone, distractors
from toolshift.data.trainers import Fitted, Trainer, fitted, trainer_of
from toolshift.data.written_calls import CALLS_IN_TEXT, calls_in_text
from toolshift.runs.cell import write_stack
from toolshift.shifts.registry import find_shift
from toolshift.shifts.release.release import Release
from toolshift.shifts.stacks import stacks_of
from toolshift.shifts.training_families import TRAINING_FAMILIES

DISTRACTORS = "distractors"
"""Tools out of the rest of the data beside those of a conversation."""
ENDINGS = "endings"
"""The last step has become impossible, for its tool is gone; and the look-alike of that."""
TOOL_GONE = "tool_gone"
"""Of the endings, the refusal alone."""
DEFAULT = (
    "EFP", "SBP", "SRP", "options", "parameters", "formats", "midway", "graph",
    DISTRACTORS, ENDINGS,
)  # fmt: skip
MAX_TRIES = 6
"""As many entries are tried on a row, each with all of its shifts."""
DRAWS = 4
"""In how many ways a stack of shifts may fall on one list of tools."""
COLUMN = "toolshift"


class Recipe(msgspec.Struct, frozen=True):
    """What is done to a data set.

    Attributes:
        alpha: the share of conversations that are shifted, from 0 to 1.
        shifts: families, tiers, shifts `NAME[:SEVERITY]`, stacks of them joined by `+`, and
            `distractors`, `endings` and `tool_gone`; drawn equally often.
        severities: for those that name none.
        seed: of every choice.
        format: of the rows; "" where each is recognised by what is in it.
        to: the format to write; "" for that of each row.
        trainer: for which rows are written, instead of in a format; "" for none.
    """

    alpha: float = 0.3
    shifts: tuple[str, ...] = DEFAULT
    severities: tuple[int, ...] = SEVERITIES
    seed: int = 0
    format: str = ""
    to: str = ""
    trainer: str = ""

    @property
    def lends_tools(self) -> bool:
        """Whether rows are shown tools of the rest of the data."""
        return any(own is not None and own.name == DISTRACTORS for own in map(own_of, self.shifts))


class Own(NamedTuple):
    """An entry that is a shift of recorded rows alone, and none of the sandbox.

    Attributes:
        name: of it.
        severity: that it names; 0 for none.
    """

    name: str
    severity: int


def own_of(entry: str) -> Own | None:
    """The shift of recorded rows alone that an entry is; None for those of the sandbox."""
    for part in entry.split("+") if "+" in entry else ():
        if (alone := part.partition(":")[0]) in (DISTRACTORS, ENDINGS):
            raise UsageError(f"{alone} in {entry} stands alone, and + joins shifts of the sandbox")
    name, colon, severity = entry.partition(":")
    if name not in (DISTRACTORS, ENDINGS, TOOL_GONE):
        return None
    if not colon:
        return Own(name, 0)
    if name != DISTRACTORS:
        raise UsageError(f"shift {entry!r}: {name} knows no severity: write {name}")
    if severity not in map(str, SEVERITIES):
        raise UsageError(f"severity {severity!r} of {entry}: it goes from 1 to 3")
    return Own(name, int(severity))


class Made(msgspec.Struct, frozen=True):
    """What became of a row.

    Attributes:
        rows: to train on in its place; () where it stays as it is, to the byte.
        shifts: that were applied, as `name:severity`.
        reasons: why what was tried before was not applicable, by shift.
        untried: why no shift was tried, though the row was drawn; "" where one was.
        left: turns that a trainer cannot learn rightly, and are in no row as learned, by reason.
        lost: what a trainer has no place for, by what it is.
    """

    rows: tuple[Row, ...] = ()
    shifts: str = ""
    reasons: dict[str, str] = {}
    untried: str = ""
    left: dict[str, int] = {}
    lost: dict[str, int] = {}


def check_recipe(recipe: Recipe) -> None:
    """Checks a recipe before anything is read."""
    if not 0 <= recipe.alpha <= 1:
        raise UsageError(
            f"alpha is a share of the conversations, from 0 to 1, not {recipe.alpha:g}"
        )
    if not recipe.shifts:
        raise UsageError("name at least one shift")
    for severity in recipe.severities:
        if severity not in SEVERITIES:
            raise UsageError(f"severity {severity}: it goes from 1 to 3")
        for entry in recipe.shifts:
            if own_of(entry) is None:
                stacks_of(entry, severity)
    for name in filter(None, (recipe.format, recipe.to)):
        FORMATS.find(name)
    if recipe.trainer:
        trainer_of(recipe.trainer)
        if recipe.to:
            raise UsageError("--for says how rows are written, and so does --to: leave one of them")


def open_questions(recipe: Recipe) -> tuple[str, ...]:
    """What the files of coming changes leave open: rows that need it are not shifted by them."""
    names = (
        applied.shift
        for drawn in stacks_by_severity(recipe)
        for stacks in drawn
        for stack in stacks
        for applied in stack
    )
    rules = (find_shift(name).rule for name in dict.fromkeys(names))
    return tuple(one for rule in rules if isinstance(rule, Release) for one in rule.questions)


def format_of(row: Mapping[str, Any], recipe: Recipe) -> Format:
    """The format of a row."""
    return FORMATS.find(recipe.format) if recipe.format else recognised(row)


def is_selected(digest: str, recipe: Recipe) -> bool:
    """Whether the row of this hash is to be shifted, if a shift can be applied to it."""
    # The digest is uniform already; the seed turns it by the golden ratio of 64 bits.
    turned = (int(digest, 16) + recipe.seed * 0x9E3779B97F4A7C15) % 2**64
    return turned < recipe.alpha * 2**64


def augmented(row: Row, content: bytes, recipe: Recipe, functions: Lent | None = None) -> Made:
    """What becomes of a row."""
    form = format_of(row, recipe)
    target = FORMATS.find(recipe.to) if recipe.to else form
    conversation = read_as(form, row)
    check(conversation)
    _check_column(row)

    def written(part: Conversation) -> Fitted:
        return _written(part, row, form, target, recipe)

    same = target is form and not recipe.trainer
    plain = Fitted(()) if same else written(conversation)
    as_it_is = Made(plain.rows, left=plain.left, lost=plain.lost)
    digest = digest_of(content)
    if not is_selected(digest, recipe):
        return as_it_is
    if not called(conversation):
        return msgspec.structs.replace(as_it_is, untried=_untold(conversation))
    reasons: dict[str, str] = {}
    twice = ListedTwice(conversation)
    for draw in draws(recipe, digest):
        try:
            label, parts = _apply(draw, twice.marked, functions or {})
            parts = [twice.written(part) for part in parts]
            _check_strict(conversation, parts)
            if draw.own is None or draw.own.name != DISTRACTORS:  # chosen by their language
                check_language(conversation, parts)
            note = {COLUMN: told(label, recipe, digest)} if _has_further(recipe) else {}
            made = [_applicable(written, part) for part in parts]
            rows = tuple({**one, **note} for fit in made for one in fit.rows)
            lost = sum((Counter(fit.lost) for fit in made), Counter[str]())
            return Made(rows, label, reasons, lost=dict(lost))
        except NotApplicable as reason:
            name = draw.name
            reasons[name] = re.sub(rf"^{re.escape(name)}:\d: ", "", str(reason))
    return msgspec.structs.replace(as_it_is, reasons=reasons)


def _written(part: Conversation, row: Row, form: Format, target: Format, recipe: Recipe) -> Fitted:
    """The rows of a conversation, as the recipe has them written."""
    if recipe.trainer:
        return _for_trainer(part, row, form, trainer_of(recipe.trainer))
    if target is form:
        return Fitted((target.write(part, row),))
    return Fitted((_in_format(part, row, form, target),))


def _applicable(written: Callable[[Conversation], Fitted], part: Conversation) -> Fitted:
    """The rows of a shifted conversation; whatever keeps it from being written keeps the shift."""
    try:
        made = written(part)
    except RowFault as wrong:
        raise NotApplicable(str(wrong)) from None
    for why in made.left:
        raise NotApplicable(why)
    return made


def _for_trainer(part: Conversation, row: Row, form: Format, trainer: Trainer) -> Fitted:
    """The rows of a conversation for a trainer, with the further columns where it reads over them.

    The column that says what a row went through is in each, as a table has the same columns.
    """
    fit = fitted(part, trainer)
    further = {COLUMN: "", **_further(row, form)} if trainer.further else {}
    return msgspec.structs.replace(fit, rows=tuple({**further, **one} for one in fit.rows))


def _has_further(recipe: Recipe) -> bool:
    """Whether rows may have columns that whoever reads them does not know."""
    return not recipe.trainer or trainer_of(recipe.trainer).further


def _check_strict(before: Conversation, parts: Sequence[Conversation]) -> None:
    """Checks that tools which say `strict: true`, and are so, still are.

    A parameter that may be left out is none of a strict tool: whoever reads it would refuse it.
    """
    if not any(tool.function.get("strict") is True for tool in before.tools):
        return
    if any(_strict_faults(before)):
        return
    for fault in (fault for part in parts for fault in _strict_faults(part)):
        raise NotApplicable(f"a tool is `strict: true`, and would not be so: {fault}")


def _strict_faults(conversation: Conversation) -> Iterator[str]:
    """What is wrong with tools that say they are strict."""
    for tool in conversation.tools:
        if tool.function.get("strict") is True and (
            fault := strict_fault(tool.function.get(PARAMETERS))
        ):
            yield f"{tool.function['name']}: {fault}"


def _untold(conversation: Conversation) -> str:
    """Why there is nothing to shift in a conversation that has no calls."""
    if calls_in_text(conversation):
        return CALLS_IN_TEXT
    return "no tool is called in it" if conversation.tools else "it lists no tools"


def _check_column(row: Row) -> None:
    """Checks that the column that says what a row went through holds nothing of the user's."""
    held = row.get(COLUMN)
    if held and not str(held).startswith(_NOTE):
        raise RowFault(
            f"its column `{COLUMN}` is not of ToolShift, which says there what a row went through: "
            "give that column another name"
        )


_NOTE = '{"shifts":'


def told(label: str, recipe: Recipe, digest: str) -> str:
    """What the column says of a row: what it went through, the seed, and the hash of its source."""
    return f'{_NOTE}"{label}","seed":{recipe.seed},"from":"{digest}"}}'


class Draw(msgspec.Struct, frozen=True):
    """One try of an entry.

    Attributes:
        entry: of the recipe.
        severity: 1 to 3.
        stack: of shifts; () for what only a data set can do.
        number: which of the ways in which the shifts may fall on a list of tools.
        key: of everything else.
    """

    entry: str
    severity: int
    stack: Stack
    number: int
    key: str

    @property
    def name(self) -> str:
        """Of the shifts, without their severities."""
        return "+".join(applied.shift for applied in self.stack) or self.entry

    @property
    def own(self) -> Own | None:
        """What only a data set can do, if it is that."""
        return own_of(self.entry)

    @property
    def rng(self) -> Random:
        """For what only a data set can do."""
        return seeds.rng("draw", self.entry, self.key)

    @property
    def renames(self) -> bool:
        """Whether names and texts alone move, so that one draw serves every conversation."""
        return renames(self.stack)


class Pick(NamedTuple):
    """What the first number of a try decides, by places in the lists that it is drawn from.

    Attributes:
        entry: of the entries that are left.
        severity: of those of the recipe.
        stack: of those that the entry stands for, with which the try begins.
        way: in which the shifts may fall on a list of tools.
    """

    entry: int
    severity: int
    stack: int
    way: int


def draw_number(recipe: Recipe, digest: str, place: int) -> int:
    """The number that decides one try on a row; `place` is that of the try, from 0."""
    return seeds.derive_once(recipe.seed, "draw", digest, place)


def pick(recipe: Recipe, number: int, left: Sequence[Sequence[int]]) -> Pick:
    """Draws one try on a row."""
    number, entry = divmod(number, len(left))
    number, severity = divmod(number, len(recipe.severities))
    number, stack = divmod(number, left[entry][severity])
    return Pick(entry, severity, stack, number % DRAWS)


def draws(recipe: Recipe, digest: str) -> Iterator[Draw]:
    """What is tried on a row, in this order, until something is applicable."""
    entries, stacks = list(recipe.shifts), list(stacks_by_severity(recipe))
    counts = [[len(one_stack) for one_stack in one] for one in stacks]
    for place in range(min(MAX_TRIES, len(entries))):
        number = draw_number(recipe, digest, place)
        which, severity, first, way = pick(recipe, number, counts)
        entry, drawn = entries.pop(which), stacks.pop(which)[severity]
        counts.pop(which)
        for stack in drawn[first:] + drawn[:first]:
            yield Draw(entry, recipe.severities[severity], stack, way, f"{recipe.seed} {digest}")


@lru_cache(maxsize=16)
def stacks_by_severity(recipe: Recipe) -> tuple[tuple[tuple[Stack, ...], ...], ...]:
    """The stacks of shifts of each entry of a recipe, at each of its severities."""
    return tuple(
        tuple(
            ((),) if own_of(entry) else stacks_of(entry, severity) for severity in recipe.severities
        )
        for entry in recipe.shifts
    )


def converted(row: Row, form: Format, target: Format) -> Row:
    """A row in another format; its further columns survive."""
    return _in_format(read_as(form, row), row, form, target)


def _in_format(conversation: Conversation, row: Row, form: Format, target: Format) -> Row:
    for place, message in enumerate(conversation.messages):
        if message.more:
            raise RowFault(f"message {place} holds more than text, which {target.name} cannot say")
    out = {**_further(row, form), **target.write(portable(conversation), None)}
    try:
        again = read_as(recognised(out), out)
    except RowFault as fault:
        raise RowFault(f"{target.name} cannot say it: it could not be read ({fault})") from None
    if said_in(again) != said_in(conversation):
        raise RowFault(f"{target.name} cannot say it: it would be read as something else")
    return out


def _further(row: Row, form: Format) -> Row:
    """The columns of a row that no format knows, and that its own can do without."""
    held = [key for key in row if not form.recognises({k: row[k] for k in row if k != key})]
    known = {"messages", "tools", "conversations", "system", "query", "answers", "content"}
    if form is ADP_ROWS:
        row = without_tools(row)
    if form is RESPONSES_ROWS:
        row = without_items(row)
    if form is PROMPT_COMPLETION_ROWS:
        row = without_sides(row)
    if form is GEMINI_ROWS:
        known |= {"contents", "systemInstruction", "system_instruction", "toolConfig"}
    return {key: value for key, value in row.items() if key not in known and key not in held}


def digest_of(content: bytes) -> str:
    """Of the content of a row; every choice about it is derived from it."""
    return sha256(content).hexdigest()[:16]


def _apply(
    draw: Draw, conversation: Conversation, functions: Lent
) -> tuple[str, list[Conversation]]:
    """A conversation under one draw, and what it was."""
    if own := draw.own:
        if own.name == DISTRACTORS:
            severity = own.severity or draw.severity
            made = _with_distractors(conversation, draw.rng, severity, functions)
            return f"{DISTRACTORS}:{severity}", [made]
        return _another_ending(conversation, draw.rng, own.name)
    parts = replay(conversation, _ready(draw, conversation))
    if len(parts) == 1 and _same(parts[0], conversation):
        raise NotApplicable("nothing that is shown changes")
    return write_stack(draw.stack), parts


def _ready(draw: Draw, conversation: Conversation) -> Prepared:
    """The tools of a conversation under the shifts of a draw."""
    tools, names = conversation.tools, called(conversation)
    if not draw.renames:
        flow = flow_of(conversation) if _rewires(draw.stack) else NO_FLOW
        return prepared(tools, draw.stack, names, draw.number, flow)
    names = on_offer(names, (tool.function["name"] for tool in apart(tools)[0]))
    why = NotApplicable(NONE_CALLED)
    for needed in needed_by(draw.stack, names, draw.key):
        try:
            ready = prepared(tools, draw.stack, needed, draw.number)
        except NotApplicable as reason:
            why = reason
            continue
        if ready.reaches(names):
            return ready
    raise why


@lru_cache(maxsize=1024)
def _rewires(stack: Stack) -> bool:
    """Whether a shift is of the graph of tools, which needs to know what feeds what."""
    graph = {split_version(name)[0] for name in TRAINING_FAMILIES.find("graph")}
    return any(find_shift(applied.shift).base in graph for applied in stack)


@lru_cache(maxsize=1024)
def renames(stack: Stack) -> bool:
    """Whether there are shifts, and all are of names and texts alone."""
    known = [find_shift(applied.shift) for applied in stack]
    return bool(known) and all(e.level == 1 and e.dimension == "action" for e in known)


def _same(one: Conversation, other: Conversation) -> bool:
    return one.messages == other.messages and [t.function for t in one.tools] == [
        t.function for t in other.tools
    ]


# -- what only a data set can do ---------------------------------------------------------------


def _with_distractors(
    conversation: Conversation, rng: Random, severity: int, functions: Lent
) -> Conversation:
    shown = [tool.function for tool in conversation.tools]
    added = distractors(functions, shown, rng, {1: 1, 2: 3, 3: 8}[severity])
    own, kept = apart(conversation.tools)
    tools = [*own, *(ToolShown(function) for function in added)]
    return Conversation((*rng.sample(tools, len(tools)), *kept), conversation.messages)


def _another_ending(
    conversation: Conversation, rng: Random, which: str
) -> tuple[str, list[Conversation]]:
    """The conversation without a tool: the last that it calls, or one that it never calls."""
    own, kept = apart(conversation.tools)
    names = [tool.function["name"] for tool in own]
    if rng.random() < 0.5 and which == ENDINGS:
        spare = [name for name in names if name not in called(conversation)]
        if not spare:
            raise NotApplicable("every tool is called, so none can be spared")
        gone = rng.choice(spare)
        return "tool_gone_lookalike", [_without(conversation, gone, conversation.messages)]
    place, message = _last_calling(conversation, names)
    gone = message.calls[0].name
    earlier = {c.name for m in conversation.messages[:place] for c in m.calls}
    if len(message.calls) > 1 or gone in earlier or not message.learned:
        raise NotApplicable("the last tool is called more than once")
    check_alone(conversation, gone)
    ending = ending_of(conversation, rng, bool(kept))
    return TOOL_GONE, [_without(conversation, gone, (*conversation.messages[:place], ending))]


def _last_calling(conversation: Conversation, names: list[str]) -> tuple[int, Message]:
    """The last message that calls one of these tools."""
    calling = (
        place
        for place, message in enumerate(conversation.messages)
        if any(call.name in names for call in message.calls)
    )
    place = max(calling, default=None)
    if place is None:
        raise NotApplicable("no tool is called")
    return place, conversation.messages[place]


def _without(conversation: Conversation, gone: str, messages: tuple[Message, ...]) -> Conversation:
    """A conversation whose list of tools lacks one."""
    tools = tuple(tool for tool in conversation.tools if tool.function["name"] != gone)
    check_gone([gone], tools, messages)
    return Conversation(tools, messages)
