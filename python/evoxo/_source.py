"""The version of a problem, computed from its source. It changes if the code changes, but not if only comments, docstrings, empty
lines or the width of the indentation change."""

from __future__ import annotations

import hashlib
import io
import tokenize
from typing import Iterator, List, Tuple

VERSION_DIGITS = 12
"""The number of digits of a version."""

_IGNORED = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.TYPE_COMMENT)
_OPENS = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")} - {-1}
_CLOSES = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")} - {-1}


def version_of(source: bytes) -> str:
    """The version of a file with this content.

    It is a hash of the Python tokens in order, without comments and without statements that are only strings, such as docstrings.
    A file that is not Python is hashed as it is.
    """
    try:
        text = io.TextIOWrapper(io.BytesIO(source), tokenize.detect_encoding(io.BytesIO(source).readline)[0]).read()
        hashed = "\n".join(map(repr, _statements(text))).encode()
    except (tokenize.TokenError, SyntaxError, ValueError):
        hashed = source
    return hashlib.sha256(hashed).hexdigest()[:VERSION_DIGITS]


def _statements(text: str) -> Iterator[List[str]]:
    """The tokens of each statement that consists of more than strings."""
    line: List[str] = []
    strings = True
    for kind, word in _tokens(text):
        if kind in (tokenize.INDENT, tokenize.DEDENT):
            yield [tokenize.tok_name[kind]]
        elif kind in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if not strings:
                yield line
            line, strings = [], True
        else:
            line.append(word)
            strings = strings and kind == tokenize.STRING


def _tokens(text: str) -> Iterator[Tuple[int, str]]:
    """The kind and text of each token that counts. An f-string is one token, as it was before Python 3.12."""
    lines = text.split("\n")
    depth, begin = 0, (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _OPENS:
            begin = begin if depth else token.start
            depth += 1
        elif token.type in _CLOSES:
            depth -= 1
            if depth == 0:
                yield tokenize.STRING, _between(lines, begin, token.end)
        elif depth == 0 and token.type not in _IGNORED:
            yield token.type, token.string


def _between(lines: List[str], begin: Tuple[int, int], end: Tuple[int, int]) -> str:
    """The text between two positions, each a line from 1 and a column from 0."""
    (first, left), (last, right) = begin, end
    if first == last:
        return lines[first - 1][left:right]
    return "\n".join([lines[first - 1][left:], *lines[first : last - 1], lines[last - 1][:right]])
