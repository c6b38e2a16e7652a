"""Every regular expression of the source, with how it is used and what is worst for it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "holdfast"
MEGABYTE = 1_000_000
_NOT_PATTERNS = frozenset({"escape", "purge", "error"})


@dataclass(frozen=True, slots=True)
class Use:
    method: str
    worst: tuple[tuple[str, str], ...]  # what comes once, what is repeated after it
    most: int = MEGABYTE  # characters that reach it; fewer only where the source cuts


def use(method: str, *worst: tuple[str, str] | str, most: int = MEGABYTE) -> Use:
    return Use(method, tuple(("", w) if isinstance(w, str) else w for w in worst), most)


#: module.name -> its use. The name is that of the constant, or of the function it is written in.
USES = {
    "answered_once._KEY": use("match", "a"),
    "items._TEXT": use("findall", '"', '\\"', ('"', '\\"'), ('"a', "\\\\"), '" ', most=2_000),
    "uploading.safe_name": use("split", "/", "a"),
    "urls._PREFIX": use("fullmatch", "a"),
    "output._CONTROL": use("sub", "\x00", "a"),
    # Only our own settings come here.
    "database_url.mask_password": use("sub", "://a:", "password=", most=2_000),
    "accounts._NAME": use("match", "a"),
    "value_search._QUOTED": use("fullmatch", '"', '"a', ('"', "a"), ('"a":', "a")),
    "file_store._SHA256": use("match", "a"),
    "body._ZEROS": use("match", "\0"),
    "message._HOST": use("fullmatch", "a", "a:", "."),
    "reply._CHARSET": use("search", "charset ", ("charset", " "), "charset=", ("charset=", " ")),
    "robots._PRODUCT": use("match", "a"),
    "statuses._SECONDS": use("fullmatch", "1", ("1.", "1")),
    "envelope._TRACESTATE_MEMBER": use("fullmatch", "a", ("a=", "a")),
    "envelope._SURROGATE": use("search", "\\", "\\u", "\\ud", "\\\\"),
    "extension._NAME": use("fullmatch", "a", "a_", "a-"),
    "extension._PART": use("fullmatch", "a", "a_", "a-"),
    "topology._UNEQUAL": use(
        "search",
        "inequivalent arg 'a' for queue 'a'",
        ("inequivalent arg 'a' for queue 'a'", ": received a "),
        most=2_000,
    ),
    "tracing._FORM": use("fullmatch", "a", ("00-" + "a" * 32 + "-" + "a" * 16 + "-00", "-")),
    "datasette._SIZE_LIMIT": use(
        "search", "_size must be <= ", ("_size must be <= ", "1"), most=300
    ),
    "datasette._TIME_LIMIT": use("search", "time limi", most=300),
    "datasette._REBUILDING": use("search", "no such tabl", "unable to ope", most=300),
    "datasette._TAG": use("sub", "<", "<a", "< >"),
    "municipalities._SUBDOMAIN": use("fullmatch", "a", "a.", "a-", ("a", "-")),
    "municipalities._url": use("fullmatch", ("https://", "a"), ("https://a/", "/"), "https://"),
    "wording._WORD_STARTS": use("sub", "A", "aA", "Aa"),
    "wording._TOKENS": use("findall", "a ", " ", "a"),
    "reads._WORDS": use("findall", '"', "a", 'a"', ('"', "a")),
    "reads._FOUND": use("findall", "\x02", "\x02a", ("\x02", "a")),
    "reads._containing": use("sub", "%", "\\"),
    "rows._DAY": use("fullmatch", "1"),
    "rows._DIGITS": use("fullmatch", "1"),
    "cursor_api._LINK": use("findall", "<", "<a", ("<", "a"), "<>"),
    "cursor_api._REL_NEXT": use("search", "; ", (";", " "), ";rel ", "; rel = ", ("; rel =", " ")),
    "queries._PARAMETER": use("sub", "'", ":", ("'", "a"), most=100_000),
    "queries._read": use("split", "-- name: ", "\n", most=100_000),
    "detect._CENTRAL_EUROPEAN": use("findall", "\x8a", "a\x9a", "a"),
    "detect._SEPARATOR_LINE": use("match", "sep=", ('"sep=;"', "\r")),
    "spreadsheet_child._CELL": use(
        "findall", "<c ", "<", "<a", ("<", "a"), ("<c ", "a"), ("<c ", ' r="'), "<a:c "
    ),
    "spreadsheet_child._ERROR_CELL": use(
        *("findall", "<c ", '<c t="e">', ("<c ", ' t="e"'), ('<c t="e">', "<"), "<a"),
        *(('<c t="e">', "<a>"), ('<c t="e">', "</a"), '<c t="e"/>', ("<", "a"), ("<c ", "a")),
    ),
    "spreadsheet_child._REFERENCE": use("search", 'r="', ' r="A', ' r="1'),
    "spreadsheet_child._VALUE": use("search", "<v>", "<a", ("<v>", "a"), ("<", "a")),
    "writers._PLAIN_NUMBER": use("match", "1", "1.", ("1e", "1"), ("", "1,1.")),
    "writers._SEMICOLON_CELL": use("search", ";", (";", '"'), ';"'),
    "writers._TAB_CELL": use("search", "\t", ("\t", '"'), '\t"'),
    "writers._RETURN_CELL": use("search", "\r", ("\r", '"'), '\r"'),
    "writers._NEWLINE_CELL": use("search", "\n", ("\n", '"'), '\n"'),
    "writers._FORMULA_WITHIN": use(
        "sub", ";", (";", '"'), ";-1", (";-", "1"), (";-", "1."), (";-", "1e"), ';"-1.1'
    ),
    "columns._NUMBER": use("match", "1", "1,", "111,", "1 111", ("1", "111"), ("1.", "1")),
    "columns._ZEROS": use("match", "0"),
    "columns._DATE": use("match", "1", ("2026-11-01T", "a"), ("2026-11-01 ", "\n")),
    "columns._ADDRESS": use("match", ("https://", "a"), ("https://", "a ")),
    "columns._likeness": use("sub", "-", "a"),
    "filtering._CODE": use("match", "a"),
    "filtering._WORD": use("findall", '"', 'a"', ('"', "a"), "a", '"\n'),
    "filtering.column_word": use("search", "a"),
    "settings._SCOPE": use("match", ("pipeline:", "a"), ("source:", "/")),
}
#: Patterns that the source puts together, and where their bound comes from.
BUILT = {
    "reads.highlighted": "at most 50 escaped words over the first 100,000 characters",
    "queries.compile_query": "our own SQL files",
}


@dataclass(frozen=True, slots=True)
class Expression:
    name: str
    pattern: str | bytes | None  # None: put together when it is used
    flags: str


@functools.cache
def expressions() -> list[Expression]:
    return [
        expression
        for path in sorted(SOURCE.rglob("*.py"))
        for expression in _in_module(path.stem, ast.parse(path.read_text(encoding="utf-8")))
    ]


def _in_module(module: str, tree: ast.Module) -> Iterator[Expression]:
    for place, node in _named_nodes(tree, "module"):
        if _is_expression(node):
            flags = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "flags")]
            named = [ast.unparse(flag) for flag in flags if ast.unparse(flag).startswith("re.")]
            yield Expression(f"{module}.{place}", _literal(node.args[0]), "|".join(named))


def _named_nodes(node: ast.AST, place: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call with the constant that it makes, or the function that it is in."""
    for child in ast.iter_child_nodes(node):
        name = place
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = child.name
        elif isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
            name = child.targets[0].id if child.targets[0].id.isupper() else place
        if isinstance(child, ast.Call):
            yield name, child
        yield from _named_nodes(child, name)


def _is_expression(node: ast.Call) -> bool:
    function = node.func
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr not in _NOT_PATTERNS
    )


def _literal(node: ast.expr) -> str | bytes | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, str | bytes) else None
