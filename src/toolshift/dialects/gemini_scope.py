"""What of a request to Gemini is shifted; all else is refused, or passed on.

The lists name what is known to be shifted, or to say nothing of tools (`chat_scope` says why). A
cache of contents is on none of them, since it may hold tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Part = dict[str, Any]

_FIELDS = frozenset(
    (
        "contents", "systemInstruction", "tools", "toolConfig", "generationConfig",
        "safetySettings", "model", "labels", "serviceTier", "store",
    )
)  # fmt: skip
_SETTINGS = frozenset(
    (
        "stopSequences", "responseMimeType", "responseSchema", "responseJsonSchema",
        "responseModalities", "responseFormat", "thinkingConfig", "speechConfig", "imageConfig",
        "mediaResolution", "maxOutputTokens", "temperature", "topP", "topK", "seed",
        "presencePenalty", "frequencyPenalty", "responseLogprobs", "logprobs",
        "enableEnhancedCivicAnswers", "candidateCount",
    )
)  # fmt: skip
_OF_A_FUNCTION = frozenset(("name", "description", "parameters", "parametersJsonSchema"))
_OF_A_CHOICE = frozenset(("mode", "allowedFunctionNames"))
_MODES = (None, "AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED")
_ROLES = (None, "user", "model", "function")
_MEDIA = frozenset(("text", "inlineData", "fileData"))
_BESIDE = frozenset(
    (
        "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "mediaProcessing",
        "partMetadata",
    )
)  # fmt: skip
_OF_A_CALL = frozenset(("id", "name", "args"))
_OF_A_RESULT = frozenset(("id", "name", "response", "parts", "scheduling"))


def key_of(holder: Mapping[str, Any], name: str) -> str:
    """How a field is written there: the API takes `functionCall` and `function_call` alike."""
    snake = re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name)
    return snake if snake in holder and name not in holder else name


def value_of(holder: Mapping[str, Any], name: str) -> Any:
    """The value of a field, however it is written; None where it is not there."""
    return holder.get(key_of(holder, name))


def objects(holder: Mapping[str, Any], name: str) -> list[Part]:
    """The objects in a list; a `ValueError` where it is none, or holds something else."""
    found = value_of(holder, name)
    if not isinstance(found or [], list) or not all(isinstance(one, dict) for one in found or ()):
        raise ValueError(f"`{name}` is no list of objects")
    return found or []


def unshifted(body: Part) -> str:
    """The first thing in a request that is not shifted, in words; "" where there is none."""
    return next(filter(None, _all_in(body)), "")


def _all_in(body: Part) -> Iterator[str]:
    """What is not shifted, place by place; "" for a place where all is."""
    yield _beyond(body, _FIELDS, "of the request")
    yield from _in_settings(value_of(body, "generationConfig"))
    offered = False
    for tool in objects(body, "tools"):
        odd = [name for name in tool if camel(name) != "functionDeclarations"]
        yield f"the tool {odd[0][:60]!r}, which the server runs itself" if odd else ""
        for function in objects(tool, "functionDeclarations"):
            offered = True
            yield _beyond(function, _OF_A_FUNCTION, "of a function")
    yield from _in_choice(value_of(body, "toolConfig"))
    yield from _in_contents(objects(body, "contents"), offered)


def camel(name: str) -> str:
    """How a field is written in JSON."""
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)


def _beyond(holder: Part, known: Iterable[str], where: str) -> str:
    odd = [name for name, value in holder.items() if value and camel(name) not in known]
    return f"the field {odd[0][:60]!r} {where}" if odd else ""


def _in_settings(settings: Any) -> Iterator[str]:
    if settings is None:
        return
    if not isinstance(settings, dict):
        yield "a generationConfig that is no object"
        return
    yield _beyond(settings, _SETTINGS, "of the generationConfig")
    many = (value_of(settings, "candidateCount") or 1) != 1
    yield "more than one reply (`candidateCount` above 1)" if many else ""


def _in_choice(config: Any) -> Iterator[str]:
    if config is None:
        return
    if not isinstance(config, dict):
        yield "a toolConfig that is no object"
        return
    yield _beyond(config, ("functionCallingConfig",), "of the toolConfig")
    choice = value_of(config, "functionCallingConfig") or {}
    if not isinstance(choice, dict):
        yield "a functionCallingConfig that is no object"
        return
    yield _beyond(choice, _OF_A_CHOICE, "of the functionCallingConfig")
    mode, names = choice.get("mode"), value_of(choice, "allowedFunctionNames") or []
    yield "" if mode in _MODES else f"the mode {str(mode)[:60]!r} of calling functions"
    named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    yield "" if named else "allowedFunctionNames that are no list of names"


def _in_contents(contents: Iterable[Part], offered: bool) -> Iterator[str]:
    for content in contents:
        role = content.get("role")
        if role not in _ROLES:
            yield f"a content of the role {str(role)[:60]!r}"
            return
        yield _beyond(content, ("role", "parts"), "of a content")
        call = "functionCall" if role == "model" else "functionResponse"
        for part in objects(content, "parts"):
            yield _beyond(part, _MEDIA | _BESIDE | {call}, f"in a part of the {role or 'user'}")
            inner = value_of(part, call)
            if inner is None:
                continue
            yield "" if offered else "calls of tools in the history where no functions are offered"
            if not isinstance(inner, dict):
                yield f"a {call} that is no object"
                return
            known = _OF_A_CALL if role == "model" else _OF_A_RESULT
            yield _beyond(inner, known, f"of a {call}")
