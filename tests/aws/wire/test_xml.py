"""Text in XML answers."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.aws.wire.query.query import escape, structure_writer
from redrive.aws.wire.service import Service


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain ä\U0001f600\t\n", "plain ä\U0001f600\t\n"),
        ('a<b>&"c"\'', "a&lt;b&gt;&amp;&quot;c&quot;'"),
        ("a\r\nb", "a&#13;\nb"),
        ("\x00\x08\x0b\x1f\ufffe\ud800", "\ufffd" * 6),
        ("]]>", "]]&gt;"),
    ],
)
def test_texts_are_escaped_for_xml(text: str, expected: str) -> None:
    assert escape(text) == expected


XML_TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff", min_codepoint=0x20)
    | st.sampled_from("\t\n\r")
)


@given(XML_TEXT)
def test_escaped_xml_text_is_read_back_unchanged(text: str) -> None:
    element = ET.fromstring(f"<a>{escape(text)}</a>")
    assert (element.text or "") == text


@given(st.text(st.characters()))
def test_any_escaped_text_is_readable_xml(text: str) -> None:
    ET.fromstring(f"<a>{escape(text)}</a>".encode())


def test_members_stand_in_the_model_s_order() -> None:
    out: list[str] = []
    output = Service.load("sns").operation("ListTopics").output
    assert output is not None
    structure_writer(output)({"NextToken": "n", "Topics": [{"TopicArn": "a"}]}, out)
    text = "<Topics><member><TopicArn>a</TopicArn></member></Topics><NextToken>n</NextToken>"
    assert "".join(out) == text
