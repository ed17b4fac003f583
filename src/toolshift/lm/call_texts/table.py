"""The table of formats in which models write calls as text.

A text is compared with the formats from top to bottom; several share a mark. The order decides
only where two could read the same text.
"""

from __future__ import annotations

import re

from toolshift.lm.call_texts.braced_calls import after_name, gemma_calls
from toolshift.lm.call_texts.format import NAME, NEVER, Body, Format, Found, Text, either, offered
from toolshift.lm.call_texts.json_calls import json_calls, named
from toolshift.lm.call_texts.python_calls import python_calls
from toolshift.lm.call_texts.tagged_calls import Tags, nested, own_tags, tagged, tool_tags
from toolshift.lm.call_texts.tools import Tools

_HF = "https://huggingface.co"
_VLLM = "https://docs.vllm.ai/en/stable/api/vllm"
_LLAMA = "https://www.llama.com/docs/model-cards-and-prompt-formats"

_BAR = "[|\uff5c]"
"""A bar as DeepSeek has it, or as a decoder that knows only ASCII writes it."""
_GAP = "[_ \u2581]"
_CALLS = rf"<{_BAR}tool{_GAP}calls{_GAP}begin{_BAR}>"
_CALL = rf"<{_BAR}tool{_GAP}call{_GAP}begin{_BAR}>"
_SEPARATOR = rf"<{_BAR}tool{_GAP}sep{_BAR}>"
_CALL_END = rf"<{_BAR}tool{_GAP}call{_GAP}end{_BAR}>"
_CALLS_END = rf"<{_BAR}tool{_GAP}calls{_GAP}end{_BAR}>"
_DSML = rf"\s*+{_BAR}+\s*+DSML\s*+{_BAR}+\s*+"
_SPACE = rf"(?:{_DSML}|[\w-]+:)?"
"""What stands before the name of a tag: a namespace, or DeepSeek's mark."""
_WRAPPER = rf"<{_SPACE}(?:function_calls?|tool_calls?|calls)\s*+>"
_WRAPPER_END = rf"</{_SPACE}(?:function_calls?|tool_calls?|calls)\s*+>"
_QUOTED = r"[\"'](?P<{}>[^\"'<>\n]*)[\"']"
_SUFFIX = r"(?::\w+)?"
"""What checkpoints of Hunyuan add to the names of their tags."""
_K3 = r"<\|open\|>{}<\|sep\|>"
_K3_END = r"<\|close\|>{}<\|sep\|>"
_M3 = r"\]<\]minimax\[>\["


def _format(
    name: str,
    models: str,
    source: str,
    example: str,
    opening: str,
    body: Body,
    closing: str = "",
    sure: bool = True,
) -> Format:
    """A format with a mark; its closing may stand there or not."""
    end = re.compile(closing) if closing else NEVER
    return Format(name, models, source, example, re.compile(opening, re.MULTILINE), body, end, sure)


_OBJECT = '{"ticket_id": "T-31"}'
_NAMED = '{"name": "get_ticket", "arguments": {"ticket_id": "T-31"}}'
_PYTHON = 'get_ticket(ticket_id="T-31")'
_PARAMETER = '<parameter name="ticket_id">T-31</parameter>'

_QWEN = Tags(
    r"<parameter=(?P<key>[^<>\n]+)>",
    r"</parameter>",
    r"</function>|</(?:seed:)?tool_call>",
    in_lines=True,
)
_XML = Tags(
    rf"<{_SPACE}parameter\s+name={_QUOTED.format('key')}"
    r"(?:\s+string=[\"'](?P<kind>true|false)[\"'])?[^<>]*>",
    rf"</{_SPACE}parameter\s*+>",
    rf"</{_SPACE}(?:invoke|function_call|tool_call)\s*+>",
)
_GLM = Tags(
    rf"<(?:longcat_)?arg_key{_SUFFIX}>(?P<key>[^<>]*)</(?:longcat_)?arg_key{_SUFFIX}>\s*+"
    rf"<(?:longcat_)?arg_value{_SUFFIX}>",
    rf"</(?:longcat_)?arg_value{_SUFFIX}>",
    rf"</(?:longcat_)?tool_call{_SUFFIX}>",
)
_KIMI_3 = Tags(
    _K3.format(r"argument key=\"(?P<key>[^\"<>]*)\"(?: type=\"(?P<kind>\w+)\")?[^<>]*"),
    _K3_END.format("argument"),
    _K3_END.format("call"),
)


def _glm(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
    """A call of GLM; a word between two tags of a sentence is no call without arguments."""
    begins_line = not mark.start() or text.text[mark.start() - 1] == "\n"
    has_arguments = not text.text.startswith("</", text.skip(mark.end()))
    if not (has_arguments or begins_line or mark["name"] in tools.names):
        return None
    return tagged(_GLM)(text, mark, tools)


FORMATS: tuple[Format, ...] = (
    _format(
        "Hermes",
        "Hermes, Qwen 2.5 and 3, SmolLM3, ERNIE 4.5, Falcon H1, LongCat",
        f"{_HF}/Qwen/Qwen3-8B/blob/main/tokenizer_config.json",
        f"<tool_call>\n{_NAMED}\n</tool_call>",
        r"<(?:longcat_)?tool_call>",
        json_calls,
        r"</(?:longcat_)?tool_call>",
    ),
    _format(
        "Llama 3.1, functions",
        "Llama 3.1, Functionary 3.1",
        f"{_LLAMA}/llama3_1/",
        f"<function=get_ticket>{_OBJECT}</function>",
        rf"<function=(?P<name>{NAME})>(?=\s*+\{{)",
        named(""),
        r"</function>",
    ),
    _format(
        "Qwen3-Coder",
        "Qwen3-Coder, Qwen 3.5, Nemotron 3, Seed-OSS, Step 3.5, MiMo",
        f"{_HF}/Qwen/Qwen3-Coder-30B-A3B-Instruct/blob/main/chat_template.jinja",
        "<tool_call>\n<function=get_ticket>\n<parameter=ticket_id>\nT-31\n</parameter>\n"
        "</function>\n</tool_call>",
        rf"(?:<(?:seed:)?tool_call>\s*+)?<function=(?P<name>{NAME})>",
        tagged(_QWEN),
        r"</function>(?:\s*+</(?:seed:)?tool_call>)?|</(?:seed:)?tool_call>",
    ),
    _format(
        "GLM 4.5",
        "GLM 4.5 to 4.7, Ling 3, LongCat, Hunyuan 3 and 4",
        f"{_HF}/zai-org/GLM-4.5/blob/main/chat_template.jinja",
        "<tool_call>get_ticket\n<arg_key>ticket_id</arg_key>\n<arg_value>T-31</arg_value>\n"
        "</tool_call>",
        rf"(?:<tool_calls{_SUFFIX}>\s*+)?<(?:longcat_)?tool_call{_SUFFIX}>\s*+(?P<name>{NAME})\s*+"
        rf"(?:<tool_sep{_SUFFIX}>\s*+)?(?=<(?:longcat_)?arg_key|</(?:longcat_)?tool_call)",
        _glm,
        rf"</(?:longcat_)?tool_call{_SUFFIX}>(?:\s*+</tool_calls{_SUFFIX}>)?",
    ),
    _format(
        "Claude 2",
        "Claude 2",
        "https://docs.anthropic.com/en/docs/legacy-tool-use",
        "<function_calls>\n<invoke>\n<tool_name>get_ticket</tool_name>\n<parameters>\n"
        "<ticket_id>T-31</ticket_id>\n</parameters>\n</invoke>\n</function_calls>",
        rf"(?:<function_calls>\s*+)?<invoke>\s*+<tool_name>(?P<name>{NAME})</tool_name>\s*+"
        r"<parameters>",
        own_tags(r"</parameters>"),
        r"</parameters>\s*+</invoke>(?:\s*+</function_calls>)?",
    ),
    _format(
        "Claude XML",
        "Claude, MiniMax M2, Grok",
        f"{_HF}/MiniMaxAI/MiniMax-M2/blob/main/docs/tool_calling_guide.md",
        f'<minimax:tool_call>\n<invoke name="get_ticket">\n{_PARAMETER}\n</invoke>\n'
        "</minimax:tool_call>",
        rf"(?:{_WRAPPER}\s*+)?<(?:[\w-]+:)?(?:invoke|function_call|tool_call)"
        rf"\s+name={_QUOTED.format('name')}[^<>]*>",
        tagged(_XML),
        rf"</(?:[\w-]+:)?(?:invoke|function_call|tool_call)\s*+>(?:\s*+{_WRAPPER_END})?"
        rf"|{_WRAPPER_END}",
    ),
    _format(
        "DeepSeek V3.2 and V4",
        "DeepSeek V3.2, V4, V4.1",
        f"{_HF}/deepseek-ai/DeepSeek-V3.2/blob/main/encoding/encoding_dsv32.py",
        '<\uff5cDSML\uff5cfunction_calls>\n<\uff5cDSML\uff5cinvoke name="get_ticket">\n'
        '<\uff5cDSML\uff5cparameter name="ticket_id" string="true">T-31</\uff5cDSML\uff5cparameter>'
        "\n</\uff5cDSML\uff5cinvoke>\n</\uff5cDSML\uff5cfunction_calls>",
        rf"(?:{_WRAPPER}\s*+)?<{_DSML}invoke\s+name={_QUOTED.format('name')}[^<>]*>",
        tagged(_XML),
        rf"</{_DSML}invoke\s*+>(?:\s*+{_WRAPPER_END})?",
    ),
    _format(
        "Step 3",
        "Step 3",
        f"{_VLLM}/tool_parsers/step3_tool_parser/",
        "<\uff5ctool_calls_begin\uff5c><\uff5ctool_call_begin\uff5c>function<\uff5ctool_sep\uff5c>"
        '<steptml:invoke name="get_ticket"><steptml:parameter name="ticket_id">T-31'
        "</steptml:parameter></steptml:invoke><\uff5ctool_call_end\uff5c><\uff5ctool_calls_end\uff5c>",
        rf"(?:{_CALLS}\s*+)?{_CALL}\s*+function\s*+{_SEPARATOR}\s*+<steptml:invoke\s+"
        rf"name={_QUOTED.format('name')}>",
        tagged(_XML),
        rf"</steptml:invoke>(?:\s*+{_CALL_END})?(?:\s*+{_CALLS_END})?",
    ),
    _format(
        "DeepSeek V3",
        "DeepSeek V3, R1",
        f"{_HF}/deepseek-ai/DeepSeek-V3/blob/main/tokenizer_config.json",
        "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function"
        f"<\uff5ctool\u2581sep\uff5c>get_ticket\n```json\n{_OBJECT}\n```"
        "<\uff5ctool\u2581call\u2581end\uff5c><\uff5ctool\u2581calls\u2581end\uff5c>",
        rf"(?:{_CALLS}\s*+)?(?:{_CALL}\s*+)?function\s*+{_SEPARATOR}(?P<name>{NAME})\s*+```(?:json)?",
        named(""),
        rf"(?:```\s*+)?{_CALL_END}(?:\s*+{_CALLS_END})?|```(?:\s*+{_CALLS_END})?",
    ),
    _format(
        "DeepSeek V3.1",
        "DeepSeek V3.1",
        f"{_HF}/deepseek-ai/DeepSeek-V3.1/blob/main/tokenizer_config.json",
        "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>get_ticket"
        f"<\uff5ctool\u2581sep\uff5c>{_OBJECT}<\uff5ctool\u2581call\u2581end\uff5c>"
        "<\uff5ctool\u2581calls\u2581end\uff5c>",
        rf"(?:{_CALLS}\s*+)?{_CALL}\s*+(?P<name>{NAME})\s*+{_SEPARATOR}",
        named(""),
        rf"{_CALL_END}(?:\s*+{_CALLS_END})?",
    ),
    _format(
        "Kimi K2",
        "Kimi K2",
        f"{_HF}/moonshotai/Kimi-K2-Instruct/blob/main/docs/tool_call_guidance.md",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_ticket:0"
        f"<|tool_call_argument_begin|>{_OBJECT}<|tool_call_end|><|tool_calls_section_end|>",
        r"(?:<\|tool_calls_section_begin\|>\s*+)?<\|tool_call_begin\|>\s*+"
        r"(?P<id>(?:functions\.)?(?P<name>[\w.\-/$]+)(?::\d+)?)\s*+<\|tool_call_argument_begin\|>",
        named(""),
        r"<\|tool_call_end\|>(?:\s*+<\|tool_calls_section_end\|>)?",
    ),
    _format(
        "Kimi K3",
        "Kimi K3",
        f"{_VLLM}/tool_parsers/kimi_k3_tool_parser/",
        '<|open|>tools<|sep|><|open|>call tool="get_ticket" index="1"<|sep|><|open|>argument '
        'key="ticket_id" type="string"<|sep|>T-31<|close|>argument<|sep|><|close|>call<|sep|>'
        "<|close|>tools<|sep|>",
        rf"(?:{_K3.format('tools')}\s*+)?" + _K3.format(r"call tool=\"(?P<name>[^\"<>]*)\"[^<>]*"),
        tagged(_KIMI_3),
        rf"{_K3_END.format('call')}(?:\s*+{_K3_END.format('tools')})?",
    ),
    _format(
        "MiniMax M3",
        "MiniMax M3",
        "https://docs.vllm.ai/en/latest/api/vllm/parser/minimax_m3/",
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="get_ticket">\n'
        "]<]minimax[>[<ticket_id>T-31]<]minimax[>[</ticket_id>\n]<]minimax[>[</invoke>\n"
        "]<]minimax[>[</tool_call>",
        rf"(?:{_M3}<tool_call>\s*+)?{_M3}<invoke\s+name={_QUOTED.format('name')}>",
        nested(_M3, rf"{_M3}</invoke>"),
        rf"{_M3}</invoke>(?:\s*+{_M3}</tool_call>)?",
    ),
    _format(
        "MiniMax M1",
        "MiniMax M1, Hunyuan A13B, Jamba",
        f"{_HF}/MiniMaxAI/MiniMax-M1-80k/blob/main/docs/function_call_guide.md",
        f"<tool_calls>\n{_NAMED}\n</tool_calls>",
        r"<tool_calls>",
        json_calls,
        r"</tool_calls>",
    ),
    _format(
        "Granite 20B",
        "Granite 20B, xLAM 2, any in such tags",
        f"{_HF}/ibm-granite/granite-20b-functioncalling",
        f"<function_call>{_NAMED}</function_call>",
        r"<function_calls?>",
        json_calls,
        r"</function_calls?>",
    ),
    _format(
        "Olmo 3",
        "Olmo 3",
        f"{_HF}/allenai/Olmo-3-7B-Instruct/blob/main/chat_template.jinja",
        f"<function_calls>{_PYTHON}</function_calls>",
        r"<function_calls?>",
        python_calls,
        r"</function_calls?>",
    ),
    _format(
        "Hermes, in Python",
        "small models that mix two templates",
        f"{_HF}/docs/transformers/chat_extras",
        f"<tool_call>{_PYTHON}</tool_call>",
        r"<tool_calls?>",
        either(python_calls, named(rf"\s*+(?P<name>{NAME})\s*+(?=\{{)")),
        r"</tool_calls?>",
    ),
    _format(
        "Mistral, [ARGS]",
        "Ministral 3, Mistral Large 3, Magistral, Devstral",
        "https://docs.mistral.ai/cookbooks/concept-deep-dive-tokenization-tool_calling",
        f"[TOOL_CALLS]get_ticket[ARGS]{_OBJECT}",
        r"\[TOOL_CALLS\]",
        named(
            rf"\s*+(?P<name>{NAME})\s*+(?:\[CALL_ID\](?P<id>\w+))?\s*+(?:\[ARGS\])?(?=\s*+\{{|\Z)"
        ),
    ),
    _format(
        "Mistral, list",
        "Mistral 7B v0.3, Mixtral, Mistral Nemo and Large",
        "https://docs.mistral.ai/cookbooks/concept-deep-dive-tokenization-tool_calling",
        f"[TOOL_CALLS] [{_NAMED}]",
        r"\[TOOL_CALLS\]",
        json_calls,
    ),
    _format(
        "Llama 3",
        "Llama 3.1 to 3.3",
        f"{_LLAMA}/llama3_1/",
        '<|python_tag|>{"name": "get_ticket", "parameters": {"ticket_id": "T-31"}}',
        r"<\|python_tag\|>",
        either(json_calls, python_calls),
    ),
    _format(
        "Llama 4, in tags",
        "Llama 4",
        f"{_LLAMA}/llama4/",
        f"<|python_start|>[{_PYTHON}]<|python_end|>",
        r"<\|python_start\|>",
        either(python_calls, json_calls),
        r"<\|python_end\|>",
    ),
    _format(
        "Nemotron",
        "Nemotron Nano and Super 1, 2, When2Call",
        f"{_HF}/nvidia/NVIDIA-Nemotron-Nano-9B-v2/blob/main/tokenizer_config.json",
        f"<TOOLCALL>[{_NAMED}]</TOOLCALL>",
        r"<TOOLCALL>",
        json_calls,
        r"</TOOLCALL>",
    ),
    _format(
        "Granite 3 and Phi 4",
        "Granite 3, Phi-4-mini",
        f"{_HF}/microsoft/Phi-4-mini-instruct",
        f"<|tool_call|>[{_NAMED}]<|/tool_call|>",
        r"<\|tool_calls?\|>",
        either(json_calls, python_calls),
        r"<\|/tool_calls?\|>|</\|tool_calls?\|>",
    ),
    _format(
        "functools",
        "Phi-4-mini, FireFunction 2",
        f"{_HF}/fireworks-ai/llama-3-firefunction-v2",
        f"functools[{_NAMED}]",
        r"\bfunctools(?=\[)",
        json_calls,
    ),
    _format(
        "LFM2",
        "LFM2, LFM2.5",
        "https://docs.liquid.ai/lfm/key-concepts/tool-use",
        f"<|tool_call_start|>[{_PYTHON}]<|tool_call_end|>",
        r"<\|tool_call_start\|>",
        either(python_calls, json_calls),
        r"<\|tool_call_end\|>",
    ),
    _format(
        "Gemma 3",
        "Gemma 3, Gemini in text",
        "https://www.philschmid.de/gemma-function-calling",
        f"```tool_code\n{_PYTHON}\n```",
        r"```(?:tool_code|tool_calls?|tool_use|function_calls?)[ \t]*\n|<tool_code>",
        either(json_calls, python_calls),
        r"```|</tool_code>",
    ),
    _format(
        "FunctionGemma",
        "FunctionGemma",
        "https://ai.google.dev/gemma/docs/functiongemma/formatting-and-best-practices",
        "<start_function_call>call:get_ticket{ticket_id:<escape>T-31<escape>}<end_function_call>",
        r"<start_function_call>",
        gemma_calls,
        r"<end_function_call>",
    ),
    _format(
        "Gemma 4",
        "Gemma 4",
        f"{_VLLM}/tool_parsers/gemma4_utils/",
        '<|tool_call>call:get_ticket{ticket_id:<|"|>T-31<|"|>}<tool_call|>',
        r"<\|tool_call>",
        gemma_calls,
        r"<tool_call\|>",
    ),
    _format(
        "Command R7B and A",
        "Command R7B, Command A",
        "https://docs.cohere.com/docs/command-a-hf",
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_ticket", "parameters": '
        f"{_OBJECT}}}]<|END_ACTION|>",
        r"<\|START_ACTION\|>",
        json_calls,
        r"<\|END_ACTION\|>",
    ),
    _format(
        "Command R",
        "Command R, R+",
        f"{_HF}/CohereForAI/c4ai-command-r-v01",
        f'Action: ```json\n[{{"tool_name": "get_ticket", "parameters": {_OBJECT}}}]\n```',
        r"^[*_ \t]*+Actions?:[*_]*+\s*+```(?:json)?\s*+(?=\[)",
        json_calls,
        r"```",
    ),
    _format(
        "InternLM 2",
        "InternLM 2 and 2.5",
        "https://github.com/InternLM/InternLM/blob/main/chat/chat_format.md",
        f"<|action_start|><|plugin|>\n{_NAMED}<|action_end|>",
        r"<\|action_start\|>\s*+<\|plugin\|>",
        json_calls,
        r"<\|action_end\|>",
    ),
    _format(
        "LM Studio",
        "any without a format of its own, behind LM Studio",
        "https://lmstudio.ai/docs/developer/openai-compat/tools",
        f"[TOOL_REQUEST]{_NAMED}[END_TOOL_REQUEST]",
        r"\[TOOL_REQUEST\]",
        json_calls,
        r"\[END_TOOL_REQUEST\]",
    ),
    _format(
        "Apertus",
        "Apertus",
        f"{_HF}/swiss-ai/Apertus-8B-Instruct-2509/blob/main/chat_template.jinja",
        f'<|tools_prefix|>[{{"get_ticket": {_OBJECT}}}]<|tools_suffix|>',
        r"<\|tools_prefix\|>",
        json_calls,
        r"<\|tools_suffix\|>",
    ),
    _format(
        "Inkling",
        "Inkling",
        "https://docs.vllm.ai/en/latest/api/vllm/parser/inkling/",
        f'<|content_invoke_tool_json|>{{"name": "get_ticket", "args": {_OBJECT}}}<|end_message|>',
        r"<\|content_invoke_tool_json\|>",
        json_calls,
        r"<\|end_message\|>",
    ),
    _format(
        "GigaChat 3",
        "GigaChat 3",
        f"{_HF}/ai-sage/GigaChat3-10B-A1.8B/blob/main/chat_template.jinja",
        f"function call<|role_sep|>\n{_NAMED}",
        r"function call<\|role_sep\|>|<\|function_call\|>",
        json_calls,
        r"<\|message_sep\|>",
    ),
    _format(
        "Functionary 2",
        "Functionary 2",
        f"{_HF}/meetkai/functionary-small-v2.2",
        f"<|from|>assistant\n<|recipient|>get_ticket\n<|content|>{_OBJECT}<|stop|>",
        rf"(?:(?:<\|from\|>[ \t]*assistant\s*+)?<\|recipient\|>|\A)[ \t]*"
        rf"(?!all\s*+<)(?P<name>{NAME})\s*+<\|content\|>",
        named(""),
        r"<\|stop\|>",
    ),
    _format(
        "Functionary 3",
        "Functionary 3.2",
        f"{_HF}/meetkai/functionary-small-v3.2",
        f">>>get_ticket\n{_OBJECT}",
        rf">>>(?!all\s)(?P<name>{NAME})[ \t]*+\n(?=\s*+\{{)",
        named(""),
    ),
    _format(
        "Qwen-Agent",
        "Qwen 1.5 and 2, Qwen-Agent",
        "https://github.com/QwenLM/Qwen-Agent",
        f"\u273fFUNCTION\u273f: get_ticket\n\u273fARGS\u273f: {_OBJECT}",
        rf"\u273fFUNCTION\u273f:\s*+(?P<name>{NAME})\s*+\u273fARGS\u273f:",
        named(""),
        r"\u273fRESULT\u273f",
    ),
    _format(
        "a name, then JSON",
        "GLM 4; Kimi, Mistral, DeepSeek, Functionary and Gemma where a server drops special tokens",
        f"{_HF}/zai-org/GLM-4-9B-0414",
        f"get_ticket\n{_OBJECT}",
        r"(?:^|(?<=\}))(?:call:|functions\.|function[ \t]?(?=\w+\s*+```))?"
        r"(?P<name>\w[\w.\-/$]*+)(?::\d+)?\s*+(?:```(?:json)?\s*+)?(?=\{)",
        offered(either(after_name, named(""))),
        r"```",
        sure=False,
    ),
    _format(
        "a tool as a tag",
        "Cline, Roo Code and prompts like theirs",
        "https://github.com/cline/cline",
        "<get_ticket>\n<ticket_id>T-31</ticket_id>\n</get_ticket>",
        r"<(?P<name>[A-Za-z_][\w.\-]*)>",
        tool_tags,
        sure=False,
    ),
    Format(
        "Harmony",
        "gpt-oss",
        "https://cookbook.openai.com/articles/openai-harmony",
        "<|channel|>commentary to=functions.get_ticket <|constrain|>json<|message|>"
        f"{_OBJECT}<|call|>",
    ),
    Format(
        "a list of calls",
        "Llama 3.2 and 4, ToolACE",
        f"{_LLAMA}/llama3_2/",
        f"[{_PYTHON}]",
    ),
    Format(
        "bare JSON",
        "Llama 3, xLAM, and any model that was asked for JSON",
        f"{_LLAMA}/llama3_1/",
        _NAMED,
    ),
    Format(
        "ReAct",
        "any model that was asked to write so",
        "https://arxiv.org/abs/2210.03629",
        f"Action: get_ticket\nAction Input: {_OBJECT}",
    ),
    Format(
        "our own layout",
        "models that ToolShift trains, and `--protocol text`",
        "",
        _PYTHON,
    ),
)
"""All formats that are read."""

PARTS = (
    _CALLS,
    _CALL,
    rf"{_WRAPPER}",
    rf"<{_DSML}(?:\w*\Z|invoke\b[^<>]*>?)",
    r"<(?:[\w-]+:)?invoke\b[^<>]*>?",
    rf"<function=(?:{NAME}>?)?",
    rf"{_M3}<(?:\w*\Z|(?:tool_call|invoke)\b[^<>]*>?)",
    r"<\|open\|>(?:tools|call)\b[^<>]*(?:<\|sep\|>)?",
    r"<\|tool_calls_section_begin\|>",
    r"<\|tool_call_begin\|>",
    r"<\|action_start\|>",
    r"\u273fFUNCTION\u273f:",
    r"<\|recipient\|>(?!\s*+all\b)",
)
"""Parts of the marks above: what follows them is meant as a call, whole or not."""
