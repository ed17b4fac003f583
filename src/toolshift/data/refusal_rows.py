"""Endings in which what was asked for cannot be done, in the languages that are written in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from toolshift.core.codecs import texts_in
from toolshift.core.errors import UsageError
from toolshift.core.message import REFUSE
from toolshift.core.shift import NotApplicable
from toolshift.data.conversation import Call, Conversation, Message
from toolshift.data.language import ENGLISH, LANGUAGES, language_of
from toolshift.interop.parts import kinds_of
from toolshift.interop.tools import Source, from_openai
from toolshift.shifts.release.match import POSSIBLE, alike_tools, clashing, weights_of

REFUSALS: dict[str, tuple[str, ...]] = {
    "en": (
        "I cannot finish this: none of the tools I have can do the last step.",
        "That last step is not possible here, as no tool on offer does it. I stop at this point.",
        "There is no tool for what is left to do, so I cannot complete your request.",
        "I have to stop here. The tool that this would need is not available to me.",
    ),
    "de": (
        "Das kann ich nicht abschließen: Keines meiner Werkzeuge kann den letzten Schritt.",
        "Für das, was noch zu tun ist, gibt es kein Werkzeug. Ich kann die Anfrage nicht erfüllen.",
    ),
    "fr": (
        "Je ne peux pas terminer : aucun des outils dont je dispose ne permet la dernière étape.",
        "Il n'y a pas d'outil pour ce qu'il reste à faire ; je ne peux pas aller plus loin.",
    ),
    "es": (
        "No puedo terminarlo: ninguna de las herramientas que tengo permite el último paso.",
        "No hay ninguna herramienta para lo que falta, así que no puedo completar tu solicitud.",
    ),
    "pt": (
        "Não consigo concluir: nenhuma das ferramentas que tenho permite o último passo.",
        "Não há ferramenta para o que falta fazer, por isso não posso concluir o pedido.",
    ),
    "ru": (
        "Я не могу это закончить: ни один из доступных инструментов не выполняет последний шаг.",
        "Для того, что осталось сделать, нет инструмента, поэтому я не могу выполнить запрос.",
    ),
    "ar": (
        "لا يمكنني إتمام ذلك: لا توجد بين الأدوات المتاحة أداة تنفذ الخطوة الأخيرة.",
        "لا توجد أداة لما تبقى من العمل، لذلك لا أستطيع إكمال طلبك.",
    ),
    "zh": (
        "我无法完成这一请求：现有的工具都不能执行最后一步。",
        "剩下的步骤没有可用的工具，因此我只能到此为止。",
    ),
    "ja": (
        "これを完了できません。利用できるツールの中に、最後の手順を実行できるものがありません。",
        "残りの作業に使えるツールがないため、ご依頼を完了できません。",
    ),
    "ko": (
        "이 작업을 끝낼 수 없습니다. 마지막 단계를 수행할 수 있는 도구가 없습니다.",
        "남은 작업에 쓸 수 있는 도구가 없어서 요청을 완료할 수 없습니다.",
    ),
}
"""By language; a refusal that a native speaker would not write helps nobody, so they are few."""


def refusal(conversation: Conversation, rng: Random) -> str:
    """A refusal in the language of a conversation; not applicable in one that is not known."""
    talk = [said.text for said in conversation.messages if said.role in ("user", "assistant")]
    language = language_of(talk, ENGLISH)
    if not language:
        known = ", ".join(LANGUAGES.values())
        raise NotApplicable(f"its language cannot be told to be one that is written in: {known}")
    return rng.choice(REFUSALS[language])


def ending_of(conversation: Conversation, rng: Random, protocol: bool) -> Message:
    """The end of a conversation whose next tool is gone; a call where it has ToolShift's tools."""
    text = refusal(conversation, rng)
    if not protocol:
        return Message("assistant", text)
    return Message("assistant", calls=(Call(REFUSE, {"reason": "tool_unavailable"}, "call_end"),))


def check_alone(conversation: Conversation, name: str) -> None:
    """Checks that no other tool may do the work of one, so that a refusal is right without it.

    That nothing does it is said of the world, and words do not prove it: a tool that searches the
    web or runs code does nearly all. So another tool must plainly do something else: one of the two
    reads and the other writes, or it can be told nothing, or it was told ids and dates alone.
    """
    listed = [{"type": "function", "function": t.function} for t in conversation.tools]
    try:
        box = from_openai(listed)
    except UsageError as fault:
        raise NotApplicable(str(fault)) from None
    weights = weights_of(box.sources)
    source = box.sources[name]
    for other, own in box.sources.items():
        alike = alike_tools(source, own, weights) >= POSSIBLE
        if other != name and (alike or not _does_other_work(source, own, conversation)):
            raise NotApplicable(f"{other} may do the work of {name}")


def _does_other_work(source: Source, other: Source, conversation: Conversation) -> bool:
    """Whether a tool plainly does something else than another."""
    if clashing(source, other):
        return True
    if source.tool.params and not any(_takes_text(p.schema) for p in other.tool.params):
        return True
    told = list(_told(other.tool.name, conversation))
    return bool(told) and all(_IDENTIFIES.fullmatch(text) for text in told)


_IDENTIFIES = re.compile(r"(?=.*\d)(?!.*://)\S+")
"""A text that names one thing, as ids and dates do: what is asked for in words has no digit."""


def _takes_text(schema: Mapping[str, Any]) -> bool:
    """Whether a parameter takes a text that it does not choose from a list."""
    if "enum" in schema or "const" in schema:
        return False
    kinds = kinds_of(schema)
    return not kinds or not kinds <= {"integer", "number", "boolean", "null"}


def _told(name: str, conversation: Conversation) -> Iterator[str]:
    """The texts that a tool was given in a conversation."""
    for call in (call for said in conversation.messages for call in said.calls):
        if call.name == name:
            yield from texts_in(call.arguments)
