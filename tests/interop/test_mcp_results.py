"""What a server answers beside texts, in words, for readers who get nothing but a text."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.interop.mcp_results import as_result

TEXT = {"type": "text", "text": "Seen."}
IMAGE = {"type": "image", "data": "aGVsbG8gd29ybGQh", "mimeType": "image/png"}
RECORD = {"type": "text", "text": '{"a": 1}'}


def held(**fields: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "file:///x", **fields}}


@pytest.mark.parametrize(
    ("content", "data"),
    [
        ([], ""),
        ([IMAGE], "[image/png, 12 bytes]"),
        ([{"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"}], "[audio/wav, 5 bytes]"),
        ([{"type": "image"}], "[image]"),
        ([{"type": "resource_link", "uri": "file:///x", "name": "x"}],
         "[resource link: file:///x]"),
        ([held(text="hello")], "hello"),
        ([held(text="")], ""),
        ([held(text='{"a": 1}', mimeType="application/json")], {"a": 1}),
        ([held(blob="aGVsbG8=", mimeType="image/png")],
         "[resource file:///x, image/png, 5 bytes]"),
        ([held(blob="aGVsbG8=")], "[resource file:///x, 5 bytes]"),
        ([TEXT, IMAGE], "Seen.\n[image/png, 12 bytes]"),
        ([RECORD, IMAGE], {"a": 1}),
        ([{"type": "hologram"}], "[hologram]"),
        ([{}], "[content without a type]"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_named(content: list[Any], data: Any) -> None:
    assert as_result({"content": content}, None, alone=True).data == data


def test_an_answer_without_content_is_empty_and_an_error_names_what_it_has() -> None:
    assert as_result({}, None, alone=True).data == ""
    failed = as_result({"isError": True, "content": [IMAGE]}, None, alone=True)
    assert failed.data["error"]["message"] == "[image/png, 12 bytes]"


def test_what_goes_on_beside_the_text_is_not_told_twice() -> None:
    """A proxy hands images on to its client as they came."""
    assert as_result({"content": [TEXT, IMAGE]}, None).data == "Seen."
    assert as_result({"content": [IMAGE, held(text="hello")]}, None).data == ""
