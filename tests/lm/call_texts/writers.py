"""Writes calls as the chat templates of models do, one function a format of the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from toolshift.core.calls import ToolCall

Calls = Sequence[ToolCall]
Value = Any


def dumped(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False)


def raw(value: Value) -> str:
    """As XML formats have it: a text bare, everything else as JSON."""
    return value if isinstance(value, str) else dumped(value)


def entry(call: ToolCall, key: str = "arguments") -> dict[str, Any]:
    return {"name": call.name, key: call.arguments}


def each(write: Callable[[ToolCall], str], joint: str = "") -> Callable[[Calls], str]:
    return lambda calls: joint.join(map(write, calls))


def listed(before: str, after: str, key: str = "arguments") -> Callable[[Calls], str]:
    return lambda calls: before + dumped([entry(call, key) for call in calls]) + after


def python(call: ToolCall) -> str:
    told = ", ".join(f"{key}={value!r}" for key, value in call.arguments.items())
    return f"{call.name}({told})"


def python_list(before: str, after: str) -> Callable[[Calls], str]:
    return lambda calls: f"{before}[{', '.join(map(python, calls))}]{after}"


def qwen_coder(call: ToolCall) -> str:
    told = "".join(
        f"<parameter={key}>\n{raw(value)}\n</parameter>\n" for key, value in call.arguments.items()
    )
    return f"<tool_call>\n<function={call.name}>\n{told}</function>\n</tool_call>"


def glm(call: ToolCall) -> str:
    told = "".join(
        f"<arg_key>{key}</arg_key>\n<arg_value>{raw(value)}</arg_value>\n"
        for key, value in call.arguments.items()
    )
    return f"<tool_call>{call.name}\n{told}</tool_call>"


def invoked(space: str, around: str) -> Callable[[Calls], str]:
    def write(calls: Calls) -> str:
        told = "".join(
            f'<{space}invoke name="{call.name}">\n'
            + "".join(
                f'<{space}parameter name="{key}">{raw(value)}</{space}parameter>\n'
                for key, value in call.arguments.items()
            )
            + f"</{space}invoke>\n"
            for call in calls
        )
        return f"<{around}>\n{told}</{around}>"

    return write


def dsml(calls: Calls) -> str:
    mark = "\uff5cDSML\uff5c"
    told = ""
    for call in calls:
        told += f'<{mark}invoke name="{call.name}">\n'
        for key, value in call.arguments.items():
            kind = dumped(isinstance(value, str))
            told += (
                f'<{mark}parameter name="{key}" string="{kind}">{raw(value)}</{mark}parameter>\n'
            )
        told += f"</{mark}invoke>\n"
    return f"<{mark}tool_calls>\n{told}</{mark}tool_calls>"


def claude_2(calls: Calls) -> str:
    told = "".join(
        f"<invoke>\n<tool_name>{call.name}</tool_name>\n<parameters>\n"
        + "".join(f"<{key}>{_own(value)}</{key}>\n" for key, value in call.arguments.items())
        + "</parameters>\n</invoke>\n"
        for call in calls
    )
    return f"<function_calls>\n{told}</function_calls>"


def _own(value: Value) -> str:
    """A text with line breaks at its ends stands on lines of its own."""
    text = raw(value)
    return f"\n{text}\n" if text.startswith("\n") or text.endswith("\n") else text


def tool_tag(call: ToolCall) -> str:
    told = "".join(f"<{key}>{_own(value)}</{key}>\n" for key, value in call.arguments.items())
    return f"<{call.name}>\n{told}</{call.name}>"


def step_3(calls: Calls) -> str:
    told = "".join(
        "<\uff5ctool_call_begin\uff5c>function<\uff5ctool_sep\uff5c>"
        f'<steptml:invoke name="{call.name}">'
        + "".join(
            f'<steptml:parameter name="{key}">{raw(value)}</steptml:parameter>'
            for key, value in call.arguments.items()
        )
        + "</steptml:invoke><\uff5ctool_call_end\uff5c>"
        for call in calls
    )
    return f"<\uff5ctool_calls_begin\uff5c>{told}<\uff5ctool_calls_end\uff5c>"


def deepseek(write: Callable[[ToolCall], str]) -> Callable[[Calls], str]:
    def told(calls: Calls) -> str:
        one = "<\uff5ctool\u2581call\u2581begin\uff5c>{}<\uff5ctool\u2581call\u2581end\uff5c>"
        inner = "\n".join(one.format(write(call)) for call in calls)
        return (
            f"<\uff5ctool\u2581calls\u2581begin\uff5c>{inner}<\uff5ctool\u2581calls\u2581end\uff5c>"
        )

    return told


def kimi_2(calls: Calls) -> str:
    told = "".join(
        f"<|tool_call_begin|>functions.{call.name}:{place}<|tool_call_argument_begin|>"
        f"{dumped(call.arguments)}<|tool_call_end|>"
        for place, call in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{told}<|tool_calls_section_end|>"


def kimi_3(calls: Calls) -> str:
    told = ""
    for place, call in enumerate(calls):
        told += f'<|open|>call tool="{escape(call.name)}" index="{place}"<|sep|>'
        for key, value in call.arguments.items():
            told += (
                f'<|open|>argument key="{escape(key)}" type="{_type(value)}"<|sep|>{raw(value)}'
                "<|close|>argument<|sep|>"
            )
        told += "<|close|>call<|sep|>"
    return f"<|open|>tools<|sep|>{told}<|close|>tools<|sep|>"


def _type(value: Value) -> str:
    names = {bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}
    return "null" if value is None else names.get(type(value), "string")


def minimax_3(calls: Calls) -> str:
    mark = "]<]minimax[>["
    told = ""
    for call in calls:
        told += f'{mark}<invoke name="{call.name}">\n'
        for key, value in call.arguments.items():
            told += f"{mark}<{key}>{_element(value, mark)}{mark}</{key}>\n"
        told += f"{mark}</invoke>\n"
    return f"{mark}<tool_call>\n{told}{mark}</tool_call>"


def _element(value: Value, mark: str) -> str:
    if isinstance(value, list) and value:
        return "".join(f"{mark}<item>{_element(one, mark)}{mark}</item>" for one in value)
    return raw(value)


def gemma(opening: str, quote: str, closing: str) -> Callable[[Calls], str]:
    def said(value: Value) -> str:
        if isinstance(value, str):
            return f"{quote}{value}{quote}"
        if isinstance(value, list):
            return f"[{','.join(map(said, value))}]"
        if isinstance(value, dict):
            return members(value)
        return dumped(value)

    def members(values: dict[str, Any]) -> str:
        return "{" + ",".join(f"{key}:{said(value)}" for key, value in values.items()) + "}"

    return each(lambda call: f"{opening}call:{call.name}{members(call.arguments)}{closing}")


def harmony(calls: Calls) -> str:
    """One message a call; a model writes one and waits, some write more."""
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{call.name} <|constrain|>json<|message|>"
        f"{dumped(call.arguments)}<|call|>"
        for call in calls
    )


def react(calls: Calls) -> str:
    (call,) = calls
    return f"Action: {call.name}\nAction Input: {dumped(call.arguments)}"


def name_first(calls: Calls) -> str:
    (call,) = calls
    return f"{call.name}\n{dumped(call.arguments)}"


def tagged_json(before: str, after: str) -> Callable[[Calls], str]:
    return each(lambda call: f"{before}{dumped(entry(call))}{after}", "\n")


WRITERS: dict[str, Callable[[Calls], str]] = {
    "Hermes": tagged_json("<tool_call>\n", "\n</tool_call>"),
    "Llama 3.1, functions": each(
        lambda call: f"<function={call.name}>{dumped(call.arguments)}</function>"
    ),
    "Qwen3-Coder": each(qwen_coder, "\n"),
    "GLM 4.5": each(glm, "\n"),
    "Claude 2": claude_2,
    "Claude XML": invoked("", "minimax:tool_call"),
    "DeepSeek V3.2 and V4": dsml,
    "Step 3": step_3,
    "DeepSeek V3": deepseek(
        lambda call: (
            f"function<\uff5ctool\u2581sep\uff5c>{call.name}\n```json\n"
            f"{dumped(call.arguments)}\n```"
        )
    ),
    "DeepSeek V3.1": deepseek(
        lambda call: f"{call.name}<\uff5ctool\u2581sep\uff5c>{dumped(call.arguments)}"
    ),
    "Kimi K2": kimi_2,
    "Kimi K3": kimi_3,
    "MiniMax M3": minimax_3,
    "MiniMax M1": lambda calls: (
        "<tool_calls>\n" + "".join(f"{dumped(entry(call))}\n" for call in calls) + "</tool_calls>"
    ),
    "Granite 20B": tagged_json("<function_call>", "</function_call>"),
    "Olmo 3": lambda calls: f"<function_calls>{chr(10).join(map(python, calls))}</function_calls>",
    "Hermes, in Python": each(lambda call: f"<tool_call>{python(call)}</tool_call>", "\n"),
    "Mistral, [ARGS]": each(lambda call: f"[TOOL_CALLS]{call.name}[ARGS]{dumped(call.arguments)}"),
    "Mistral, list": listed("[TOOL_CALLS] ", ""),
    "Llama 3": lambda calls: (
        "<|python_tag|>" + "; ".join(dumped(entry(call, "parameters")) for call in calls)
    ),
    "Llama 4, in tags": python_list("<|python_start|>", "<|python_end|>"),
    "Nemotron": listed("<TOOLCALL>", "</TOOLCALL>"),
    "Granite 3 and Phi 4": listed("<|tool_call|>", ""),
    "functools": listed("functools", ""),
    "LFM2": python_list("<|tool_call_start|>", "<|tool_call_end|>"),
    "Gemma 3": lambda calls: f"```tool_code\n{chr(10).join(map(python, calls))}\n```",
    "FunctionGemma": gemma("<start_function_call>", "<escape>", "<end_function_call>"),
    "Gemma 4": gemma("<|tool_call>", '<|"|>', "<tool_call|>"),
    "Command R7B and A": lambda calls: (
        "<|START_ACTION|>"
        + dumped(
            [
                {"tool_call_id": str(place), "tool_name": call.name, "parameters": call.arguments}
                for place, call in enumerate(calls)
            ]
        )
        + "<|END_ACTION|>"
    ),
    "Command R": lambda calls: (
        "Action: ```json\n"
        + dumped([{"tool_name": call.name, "parameters": call.arguments} for call in calls])
        + "\n```"
    ),
    "InternLM 2": tagged_json("<|action_start|><|plugin|>\n", "<|action_end|>"),
    "LM Studio": tagged_json("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    "Apertus": lambda calls: (
        "<|tools_prefix|>"
        + dumped([{call.name: call.arguments} for call in calls])
        + "<|tools_suffix|>"
    ),
    "Inkling": each(
        lambda call: f"<|content_invoke_tool_json|>{dumped(entry(call, 'args'))}<|end_message|>"
    ),
    "GigaChat 3": tagged_json("function call<|role_sep|>\n", "<|message_sep|>"),
    "Functionary 2": each(
        lambda call: (
            f"<|from|>assistant\n<|recipient|>{call.name}\n<|content|>"
            f"{dumped(call.arguments)}<|stop|>"
        ),
        "\n",
    ),
    "Functionary 3": each(lambda call: f">>>{call.name}\n{dumped(call.arguments)}"),
    "Qwen-Agent": each(
        lambda call: (
            f"\u273fFUNCTION\u273f: {call.name}\n\u273fARGS\u273f: {dumped(call.arguments)}"
        ),
        "\n",
    ),
    "a name, then JSON": name_first,
    "a tool as a tag": each(tool_tag, "\n"),
    "Harmony": harmony,
    "a list of calls": python_list("", ""),
    "bare JSON": lambda calls: dumped([entry(call) for call in calls]),
    "ReAct": react,
    "our own layout": lambda calls: "\n".join(
        f"{call.name}({', '.join(f'{k}={dumped(v)}' for k, v in call.arguments.items())})"
        for call in calls
    ),
}
"""The templates, by the name that the table has for the format."""

ONE = {"ReAct", "a name, then JSON"}
"""Formats of one call in a reply."""
ALONE = {"bare JSON", "a list of calls", "a name, then JSON", "Harmony", "ReAct", "our own layout"}
"""Formats that prose before them may turn into something else, or has rules of its own."""
RAW = {
    "Qwen3-Coder": ("parameter", "function"),
    "GLM 4.5": ("arg_", "</tool_call>"),
    "Claude 2": ("</",),
    "Claude XML": ("parameter", "invoke"),
    "DeepSeek V3.2 and V4": ("parameter", "invoke"),
    "Step 3": ("parameter", "invoke"),
    "Kimi K3": ("<|open|>", "<|close|>"),
    "MiniMax M3": ("]<]minimax[>[",),
    "FunctionGemma": ("<escape>",),
    "Gemma 4": ('<|"|>',),
    "a tool as a tag": ("</",),
}
"""Formats that write texts as they are: what a text in them cannot have."""
