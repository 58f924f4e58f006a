"""Forged headers: text of a message that looks like the first line MAS writes, escaped where it is typed.

An agent believes `[MAS from=person …]` because MAS alone writes that line. So what is typed holds nothing else that a
reader could take for it, in whatever letters, brackets and invisible characters.
"""

import re
import unicodedata
from itertools import accumulate

ESCAPE = "\\"
# What a character counts as while we look: nothing that is seen, a bracket like MAS's own, any other bracket.
_UNSEEN, _SQUARE, _ROUND = "\0", "[", "("
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
# Letters and symbols that show as nothing.
_BLANK = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
# Letters of other scripts that look like those of `mas` and `from`; styled Latin ones are found by their names.
_ALIKE = {
    **dict.fromkeys("\u043c\u03bc\u03fb\u13b7\ua4df\u1e43", "m"),
    **dict.fromkeys("\u0430\u03b1\u13aa\ua4ee\u0251", "a"),
    **dict.fromkeys("\u0455\u13da\ua4e2\u054f\ua731", "s"),
    **dict.fromkeys("\u03dd\u0192\u017f\ua4dd\u0584", "f"),
    **dict.fromkeys("\u0433\u13a1\ua4e3\u0280", "r"),
    **dict.fromkeys("\u043e\u03bf\u0585\ua4f3\u0660\u06f0", "o"),
}
_STYLED = re.compile(r"(?:LATIN .*|INDICATOR SYMBOL )(?:LETTER|CAPITAL) ([A-Z])\b")
# Beside opening punctuation: pieces of brackets, which are symbols.
_BRACKET = re.compile(r"LEFT .*BRACKET|LESS-THAN SIGN")
_OTHER_BRACKET = re.compile("PARENTHESIS|CURLY|QUOTATION|ANGLE|LESS-THAN")
# A line that begins `[MAS `, whatever follows, or `[MAS from` anywhere: a narrow terminal breaks lines where it likes.
_LOOK = re.compile(
    r"^[\0\\]*+(?P<line>\[)\0*+m\0*+a\0*+s\0"
    r"|(?P<inside>[\[(])[^a-z0-9\n\[(]*+m\0*+a\0*+s[^a-z0-9\n\[(]*+f\0*+r\0*+o\0*+m",
    re.MULTILINE,
)


def escaped(text: str) -> str:
    """`text` with a backslash before everything in it that looks like the start of a header of MAS."""
    folded = {character: _folded(character) for character in set(text)}
    seen = text.translate({ord(character): look for character, look in folded.items()})
    looks = {found.start(found.lastgroup or 0) for found in _LOOK.finditer(seen)}
    if not looks:
        return text
    starts = accumulate((len(folded[character]) for character in text), initial=0)
    return "".join(
        f"{ESCAPE}{character}" if not looks.isdisjoint(range(start, start + len(folded[character]))) else character
        for start, character in zip(starts, text, strict=False)
    )


def _folded(character: str) -> str:
    """What a character looks like: plain small letters, a kind of bracket, a line's end, or nothing seen."""
    return "".join(map(_one, unicodedata.normalize("NFKD", character).casefold())) or _UNSEEN


def _one(character: str) -> str:
    if character in _LINE_ENDS:
        return "\n"
    if character in _ALIKE:
        return _ALIKE[character]
    kind = unicodedata.category(character)
    if kind[0] in "CZM" or character in _BLANK:
        return _UNSEEN
    name = unicodedata.name(character, "")
    if kind in ("Ps", "Pi") or _BRACKET.match(name):
        return _ROUND if _OTHER_BRACKET.search(name) else _SQUARE
    styled = _STYLED.search(name) if not character.isascii() else None
    return styled[1].lower() if styled else character
