"""Ids: exactly what may name a session, an agent, a unit; and how people refer to a session."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.model.errors import BadInput, NoSession
from mas.model.ids import (
    find_session,
    free_name,
    is_agent_id,
    is_session_id,
    near_name,
    parse_agent_id,
    parse_name,
    parse_new_name,
    parse_session_id,
    parse_unit_name,
    shown,
    tmux_name,
)

ID = "3f2a9c1e-5b7d-4e8f-9a0b-c1d2e3f4a5b6"
IDS = st.uuids(version=4).map(str)
ARABIC_THREE, FULLWIDTH_A, FULLWIDTH_THREE = "\u0663", "\uff41", "\uff13"


def is_uuid4(text: str) -> bool:
    """What the standard library thinks, held to the one spelling."""
    try:
        value = uuid.UUID(text)
    except ValueError:
        return False
    return str(value) == text and value.version == 4


@st.composite
def near_ids(draw: st.DrawFn) -> str:
    """An id with one small change: a character replaced, put in or taken out."""
    text = draw(IDS)
    at = draw(st.integers(0, len(text)))
    there = draw(st.one_of(st.characters(), st.sampled_from(f"0123456789abcdefABCDEF-\n\0{ARABIC_THREE}{FULLWIDTH_A}")))
    return draw(st.sampled_from([text[:at] + there + text[at + 1 :], text[:at] + there + text[at:], text[:at]]))


@given(st.one_of(IDS, near_ids(), st.text()))
@settings(max_examples=300)
def test_a_session_id_is_exactly_a_lower_case_uuid4(text: str) -> None:
    assert is_session_id(text) == is_uuid4(text)
    if is_uuid4(text):
        assert parse_session_id(text) == text
    else:
        with pytest.raises(BadInput, match="Not a session id"):
            parse_session_id(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "..",
        "../" + ID,
        ID + "/..",
        ID + "\n",
        "\n" + ID,
        ID + "\0",
        ID + " ",
        ID.upper(),
        ID.replace("-", ""),
        "{" + ID + "}",
        "urn:uuid:" + ID,
        "mas-" + ID,
        "mas-" + ID[:8],
        ID.replace("3", ARABIC_THREE, 1),
        ID.replace("3", FULLWIDTH_THREE, 1),
        ID.replace("a", FULLWIDTH_A, 1),
        ID.replace("-4", "-1"),
        ID.replace("-9", "-c"),
        ID * 10,
    ],
)
def test_what_is_not_a_session_id_is_refused_on_one_short_line(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_session_id(text)
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 400


def unnamed(*ids: str) -> list[tuple[str, str | None]]:
    return [(one, None) for one in ids]


@given(st.lists(IDS, max_size=6, unique=True), st.integers(0, 5), st.integers(1, 36), st.booleans(), st.booleans())
def test_a_prefix_of_four_or_more_means_the_one_session_that_has_it(
    known: list[str], which: int, length: int, as_tmux: bool, upper: bool
) -> None:
    start = (known[which] if which < len(known) else ID)[:length]
    reference = f"mas-{start}" if as_tmux else start
    reference = reference.upper() if upper else reference
    matches = [session_id for session_id in known if session_id.startswith(start)] if length >= 4 else []
    if not matches:
        with pytest.raises(NoSession):
            find_session(reference, unnamed(*known))
    elif len(matches) == 1:
        assert find_session(reference, unnamed(*known)) == matches[0]
    else:
        with pytest.raises(BadInput, match="could be any of"):
            find_session(reference, unnamed(*known))


def test_an_ambiguous_prefix_names_the_sessions_it_could_mean() -> None:
    ids = [f"aaaa{n:04x}-5b7d-4e8f-9a0b-c1d2e3f4a5b6" for n in range(9)]
    known = unnamed(*ids)
    with pytest.raises(BadInput) as refused:
        find_session("aaaa", known)
    assert ids[0] in refused.value.message
    assert find_session("aaaa0003", known) == ids[3]
    assert find_session(ids[3], known) == ids[3]
    assert find_session(ids[3].upper(), known) == ids[3]
    assert find_session(tmux_name(ids[3]), known) == ids[3]


OTHER = "beef0000-5b7d-4e8f-9a0b-c1d2e3f4a5b6"


@pytest.mark.parametrize("name", ["web", "Release 2.0", "日本語", "a:b", "3f2b", "x" * 64])
def test_a_name_means_the_session_that_has_it(name: str) -> None:
    assert find_session(name, [(ID, name), (OTHER, None)]) == ID
    with pytest.raises(NoSession):
        find_session(name, [(ID, name + "x" if len(name) < 64 else "x"), (OTHER, None)])


def test_a_name_that_two_sessions_have_is_refused_with_both_ids() -> None:
    with pytest.raises(BadInput) as refused:
        find_session("web", [(ID, "web"), (OTHER, "web")])
    assert ID in refused.value.message
    assert OTHER in refused.value.message


def test_a_word_that_names_one_session_and_begins_the_id_of_another_means_neither() -> None:
    with pytest.raises(BadInput) as refused:
        find_session("beef", [(ID, "beef"), (OTHER, None)])
    assert ID in refused.value.message
    assert OTHER in refused.value.message
    assert find_session("beef", [(OTHER, "beef")]) == OTHER


def test_a_full_id_is_never_taken_for_a_name() -> None:
    assert find_session(ID, [(ID, None), (OTHER, ID)]) == ID
    with pytest.raises(NoSession):
        find_session(ID, [(OTHER, ID)])


@pytest.mark.parametrize(
    "reference", ["", "-x", " web", "web ", "a\nb", "a\0b", "a\x1b[0m", "x" * 65, ".", "..", "../x", "a/b"]
)
def test_a_reference_that_cannot_be_one_is_refused_before_anything_is_looked_up(reference: str) -> None:
    def nobody() -> list[tuple[str, str | None]]:
        pytest.fail("looked up")

    with pytest.raises(BadInput, match="Not a session"):
        find_session(reference, (entry for _ in [0] for entry in nobody()))


@pytest.mark.parametrize("text", ["web", "Release 2.0", "mas", "mas-web", "beef", "123", "日本語", "it's $HOME"])
def test_a_new_name_may_be_nearly_anything(text: str) -> None:
    assert parse_new_name(text) == text


@pytest.mark.parametrize(
    "text",
    [
        ID,
        ID.upper(),
        ID.replace("-4", "-1"),
        f"mas-{ID}",
        tmux_name(ID),
        tmux_name(ID).upper(),
        "21",
        "a:b",
        "web:",
        "a/b",
        ".",
        "..",
        "",
        "-x",
    ],
)
def test_a_new_name_cannot_be_taken_for_an_id_an_agent_or_a_path(text: str) -> None:
    with pytest.raises(BadInput, match=r"Not a (session's )?name"):
        parse_new_name(text)


@given(st.text(max_size=80))
def test_what_is_near_to_a_name_is_one(text: str) -> None:
    found = near_name(text)
    assert found is None or parse_new_name(found) == found


@pytest.mark.parametrize("name", ["web", "x" * 64, "x" * 61 + " yz"])
def test_a_name_that_is_taken_gets_the_next_number_and_stays_a_name(name: str) -> None:
    second = free_name(name, {name})
    third = free_name(name, {name, second})
    assert second.endswith("-2")
    assert third.endswith("-3")
    assert parse_new_name(second) == second
    assert free_name(name, {third}) == name


@given(st.text(max_size=3))
@settings(max_examples=300)
def test_an_agent_id_is_two_ascii_digits(text: str) -> None:
    wanted = len(text) == 2 and all(character in "0123456789" for character in text)
    assert is_agent_id(text) == wanted


@pytest.mark.parametrize("text", ["", "0", "000", "1a", "00\n", " 0", ARABIC_THREE * 2, FULLWIDTH_THREE * 2, "²²"])
def test_what_is_not_an_agent_id_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="Not an agent id"):
        parse_agent_id(text)


@pytest.mark.parametrize("text", ["", "10", "_x", "-x", "../x", "a/b", "a.b", "a:b", "A", "ä", "a b", "a\n", "a" * 33])
def test_what_is_not_a_unit_name_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="Not a unit name"):
        parse_unit_name(text)


@pytest.mark.parametrize("text", ["a", "meta", "r-d_2", "a" * 32])
def test_a_unit_name_is_a_short_word(text: str) -> None:
    assert parse_unit_name(text) == text


@pytest.mark.parametrize("text", ["x", "Release 2.0", "日本語チーム", "a" * 64, "it's $HOME"])
def test_a_name_may_be_in_any_script(text: str) -> None:
    assert parse_name(text) == text


@pytest.mark.parametrize("text", ["", " x", "x ", "-x", "a\nb", "a\0b", "a\x1b[31m", "a\u2028b", "\udcff", "a" * 65])
def test_a_name_is_one_printable_line_that_no_command_takes_for_an_option(text: str) -> None:
    with pytest.raises(BadInput, match="Not a name"):
        parse_name(text)


@given(st.text(alphabet=st.characters(), max_size=300))
def test_what_is_shown_of_a_text_is_short_and_printable(text: str) -> None:
    assert shown(text).isprintable()
    assert len(shown(text)) <= 10 * 61 + 2
