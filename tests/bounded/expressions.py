"""Every regular expression of the source, with how it is used and what is worst for it."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    ROOT / "src" / "holdfast",
    ROOT / "client" / "src",
    *sorted(ROOT.glob("pipelines/*/src")),
]
MEGABYTE = 1_000_000
_NOT_PATTERNS = frozenset({"escape", "purge", "error"})


@dataclass(frozen=True, slots=True)
class Use:
    method: str
    worst: tuple[tuple[str, str], ...]  # what comes once, what is repeated after it
    most: int = MEGABYTE  # characters that reach it; fewer only where the source cuts


def use(method: str, *worst: tuple[str, str] | str, most: int = MEGABYTE) -> Use:
    return Use(method, tuple(("", w) if isinstance(w, str) else w for w in worst), most)


DIGITS = ("1", "-", "1-", "1 ")
POINTS = ("1", ("1", " "), ("1.", "1"), ("1,", " "), "1 ", "1, ", ("1 1", " "), ("1.1 1.", "1"))
#: package.module.name -> its use. The name is that of the constant or the function around it.
USES = {
    "server.idempotency._KEY": use("match", "a"),
    "features.items.item_lists._TEXT": use(
        "findall", '"', '\\"', ('"', '\\"'), ('"a', "\\\\"), '" ', most=2_000
    ),
    "server.multipart.safe_name": use("split", "/", "a"),
    "urls._PREFIX": use("fullmatch", "a"),
    "cli.output._CONTROL": use("sub", "\x00", "a"),
    # Only our own settings come here.
    "urls.mask_password": use("sub", "://a:", "password=", most=2_000),
    "features.accounts.accounts._NAME": use("match", "a"),
    "features.items.value_search._QUOTED": use("fullmatch", '"', '"a', ('"', "a"), ('"a":', "a")),
    "http.body._ZEROS": use("match", "\0"),
    "http.message._HOST": use("fullmatch", "a", "a:", "."),
    "http.reply._CHARSET": use(
        "search", "charset ", ("charset", " "), "charset=", ("charset=", " ")
    ),
    "http.robots._PRODUCT": use("match", "a"),
    "http.statuses._SECONDS": use("fullmatch", "1", ("1.", "1")),
    "messaging.envelope._TRACESTATE_MEMBER": use("fullmatch", "a", ("a=", "a")),
    "messaging.envelope._SURROGATE": use("search", "\\", "\\u", "\\ud", "\\\\"),
    "extension._NAME": use("fullmatch", "a", "a_", "a-"),
    "extension._PART": use("fullmatch", "a", "a_", "a-"),
    "messaging.topology._UNEQUAL": use(
        "search",
        "inequivalent arg 'a' for queue 'a'",
        ("inequivalent arg 'a' for queue 'a'", ": received a "),
        most=2_000,
    ),
    "observe.tracing._FORM": use(
        "fullmatch", "a", ("00-" + "a" * 32 + "-" + "a" * 16 + "-00", "-")
    ),
    "holdfast_meetings.datasette._SIZE_LIMIT": use(
        "search", "_size must be <= ", ("_size must be <= ", "1"), most=300
    ),
    "holdfast_meetings.datasette._TIME_LIMIT": use("search", "time limi", most=300),
    "holdfast_meetings.datasette._REBUILDING": use(
        "search", "no such tabl", "unable to ope", most=300
    ),
    "holdfast_meetings.datasette._TAG": use("sub", "<", "<a", "< >"),
    "holdfast_meetings.municipalities._SUBDOMAIN": use("fullmatch", "a", "a.", "a-", ("a", "-")),
    "holdfast_meetings.municipalities._url": use(
        "fullmatch", ("https://", "a"), ("https://a/", "/"), "https://"
    ),
    "holdfast_meetings.web.views.wording._WORD_STARTS": use("sub", "A", "aA", "Aa"),
    "text_search._WORDS": use("findall", '"', "a", 'a"', ('"', "a")),
    "text_search._MARKED": use("findall", "\x02", "\x02a", ("\x02", "a")),
    "holdfast_meetings.reads._containing": use("sub", "%", "\\"),
    "holdfast_meetings.rows._DAY": use("fullmatch", "1"),
    "holdfast_meetings.rows._DIGITS": use("fullmatch", "1"),
    "sources.cursor_api._LINK": use("findall", "<", "<a", ("<", "a"), "<>"),
    "sources.cursor_api._REL_NEXT": use(
        "search", "; ", (";", " "), ";rel ", "; rel = ", ("; rel =", " ")
    ),
    "holdfast_client.queries._COMMENT": use("sub", "-", "--", "--\n", most=100_000),
    "holdfast_client.queries._HEADING": use(
        "split", "-- name: ", "\n", ("-- name: ", "a"), most=100_000
    ),
    "holdfast_client.queries._PARAMETER": use("sub", "'", ":", ("'", "a"), most=100_000),
    "word_lists._PLACE": use("search", " (at line ", (" (at line ", "1")),
    "word_lists._TABLE": use("fullmatch", " ", ("[", "a"), ("[a]", " "), ("[a] #", "a")),
    "word_lists._VALUE": use("fullmatch", " ", "a", ('"', "a"), ("a", " "), ("a =", "a")),
    "holdfast_posts.analysis.word_files._PHRASE": use("fullmatch", "a", "a ", ("a", " b")),
    "tables.detect._CENTRAL_EUROPEAN": use("findall", "\x8a", "a\x9a", "a"),
    "tables.detect._SEPARATOR_LINE": use("match", "sep=", ('"sep=;"', "\r")),
    "tables.spreadsheet_child._CELL": use(
        "findall", "<c ", "<", "<a", ("<", "a"), ("<c ", "a"), ("<c ", ' r="'), "<a:c "
    ),
    "tables.spreadsheet_child._ERROR_CELL": use(
        *("findall", "<c ", '<c t="e">', ("<c ", ' t="e"'), ('<c t="e">', "<"), "<a"),
        *(('<c t="e">', "<a>"), ('<c t="e">', "</a"), '<c t="e"/>', ("<", "a"), ("<c ", "a")),
    ),
    "tables.spreadsheet_child._REFERENCE": use("search", 'r="', ' r="A', ' r="1'),
    "tables.spreadsheet_child._VALUE": use("search", "<v>", "<a", ("<v>", "a"), ("<", "a")),
    "tables.writers._PLAIN_NUMBER": use("match", "1", "1.", ("1e", "1"), ("", "1,1.")),
    "tables.writers._SEMICOLON_CELL": use("search", ";", (";", '"'), ';"'),
    "tables.writers._TAB_CELL": use("search", "\t", ("\t", '"'), '\t"'),
    "tables.writers._RETURN_CELL": use("search", "\r", ("\r", '"'), '\r"'),
    "tables.writers._NEWLINE_CELL": use("search", "\n", ("\n", '"'), '\n"'),
    "tables.writers._FORMULA_WITHIN": use(
        "sub", ";", (";", '"'), ";-1", (";-", "1"), (";-", "1."), (";-", "1e"), ';"-1.1'
    ),
    "features.jobs.column_guess._NUMBER": use(
        "match", "1", "1,", "111,", "1 111", ("1", "111"), ("1.", "1")
    ),
    "features.jobs.column_guess._ZEROS": use("match", "0"),
    "features.jobs.column_guess._DATE": use(
        "match", "1", ("2026-11-01T", "a"), ("2026-11-01 ", "\n")
    ),
    "features.jobs.column_guess._ADDRESS": use("match", ("https://", "a"), ("https://", "a ")),
    "features.items.filtering._CODE": use("match", "a"),
    "features.items.filtering._WORD": use("findall", '"', 'a"', ('"', "a"), "a", '"\n'),
    "features.items.filtering.column_word": use("search", "a"),
    "server.middleware._CONTROL": use("search", "a", "\u00e9"),
    "server.middleware._HOST": use("fullmatch", "a", ("[", ":"), ("a:", "1"), "a:1"),
    # Passwords have at most 1,000 characters.
    "features.accounts.passwords._TRAILING": use("sub", "1", "a1", ("", "1"), most=1_000),
    "features.accounts.passwords._LEADING": use("sub", "1", "a1", most=1_000),
    "features.accounts.passwords.is_common": use("sub", "1", "a1", most=1_000),
    "kernel.database.migrate._statements": use("split", ";", "a"),
    "kernel.database.schema._CREATED": use(
        "findall", "create ", ("create table ", "a"), ("create or replace ", "a"), most=100_000
    ),
    "kernel.database.schema._DOWN": use("split", ("-- down", " "), "-- down\n", most=100_000),
    "kernel.database.schema._STEP": use("fullmatch", ("0002_", "a"), ("0002_a", "."), most=2_000),
    "kernel.database.schema._WORD": use("sub", "@", "a", "@a", most=100_000),
    "kernel.database.names._NAMED": use(
        "findall", "create ", ("create table ", "a"), ("drop index if exists ", "a"), most=100_000
    ),
    "holdfast_client.names._TABLE": use(
        "sub", "from ", ("from", " "), ("from ", "a"), most=100_000
    ),
    "holdfast_client.names._QUALIFIER": use("sub", "'", "-", "a", "a.", ("'", "a"), most=100_000),
    "holdfast_client.names._DEFINED": use(
        "sub", "table ", ("table", " "), ("on ", "a"), most=100_000
    ),
    "holdfast_client.names._SCHEMA": use("fullmatch", "a", "_", "1"),
    "kernel.database.migrate._target": use("fullmatch", "-", ("-", "1")),
    "kernel.record.streams.of_pipeline": use("sub", "%", "\\"),
    "server.text_diff._LINES": use("findall", "a", "\n", "a\n"),
    "server.text_diff._WORDS": use("findall", "a", " ", "a "),
    "holdfast_catalog.normalising.remarks._NUMBERED": use(
        *("sub", "room", ("room", " "), "room no ", ("room no.", " "), ("room #", " ")),
        *("1", "1 ", ("1", " "), ("1+", " "), "first ", "1 years ", "qty", ("qty", " "), "qty of "),
        *("bought in late ", "got jan", ("got january", " "), "from march. '"),
    ),
    "holdfast_catalog.normalising.remarks._NOT": use("sub", "not ", "not a ", ("not ", "a"), "-"),
    "holdfast_catalog.normalising.remarks._UNSURE": use(
        *("search", "don't know ", "not sure ", "not sure of the ", ("idk", " "), "no idea which "),
    ),
    "holdfast_catalog.normalising.remarks._SHOPS": use(
        "sub", "at ", "at kohl", "from amazon", "best ", "home depot", "tj ", ("tj", " "), "'"
    ),
    "holdfast_catalog.normalising.remarks._PART_OF": use(
        "sub", "part ", "parts of ", "parts of the", ("lid", " "), "glass off my"
    ),
    "holdfast_catalog.normalising.wording._PARTS": use("split", ",", " - ", "a", " for ", " "),
    "holdfast_catalog.normalising.wording._EXCLUDED": use(
        "sub", "(", ("(", " "), "(a ", ("(", "a"), ("(a ", "a"), "(a a a a ", (",", "a "), ", "
    ),
    "holdfast_catalog.scoring._NUMBER_SIGN": use("sub", "no", "no.", "# ", "nr .", " "),
    "holdfast_catalog.normalising.years._RANGE": use(
        "sub", "2021-24", ("2021", " "), "2021 -", ("2021-", " "), "20"
    ),
    "holdfast_linker.comparing._SEPARATORS": use("sub", " ", "a-", "a "),
    "holdfast_linker.comparing._POINT": use("fullmatch", *POINTS, ("point(", " "), "point("),
    # No text of more than 100 characters is read as a date.
    "holdfast_linker.dates._CIRCA": use("sub", " ", ("a", " "), ("ca.", " "), " ?", most=100),
    "holdfast_linker.dates._ERA": use("sub", " ", ("a", " "), " bc", "b.c.", most=100),
    "holdfast_linker.dates._ISO": use("fullmatch", *DIGITS, ("2020-01-01 0000", "a"), most=100),
    "holdfast_linker.dates._SHORT_YEAR": use("fullmatch", *DIGITS, most=100),
    "holdfast_linker.dates._COMPACT": use("fullmatch", *DIGITS, most=100),
    "holdfast_linker.dates._YEAR_FIRST": use("fullmatch", *DIGITS, ("2020.", "1."), most=100),
    "holdfast_linker.dates._DOTTED": use("fullmatch", *DIGITS, "1. ", ("1.", " "), most=100),
    "holdfast_linker.dates._SLASHED": use("fullmatch", *DIGITS, "1/", most=100),
    "holdfast_linker.dates._DAY_NAMED": use(
        *("fullmatch", *DIGITS, ("1", " "), ("1 of", " "), ("1 of may", " "), "1 may "), most=100
    ),
    "holdfast_linker.dates._NAMED_DAY": use(
        *("fullmatch", "a", ("may", " "), ("may 1", " "), ("may 1st,", " ")), most=100
    ),
    "holdfast_linker.dates._NAMED": use("fullmatch", "a", ("may", " "), ("may.,", " "), most=100),
    "holdfast_linker.dates._DECADE": use("fullmatch", *DIGITS, ("1990", "'"), most=100),
    "holdfast_linker.dates._CENTURY": use("fullmatch", *DIGITS, ("1st", " "), most=100),
    "holdfast_linker.entities._TIME": use("match", *DIGITS, ("+", "1"), "+1-"),
    "holdfast_linker.entities._ENTITY_NUMBER": use("fullmatch", ("Q", "1"), "Q"),
    "holdfast_linker.entries._PROPERTY_ID": use("fullmatch", ("P", "1"), "P"),
    "holdfast_linker.entries._ITEM_ID": use(
        "fullmatch", ("Q", "1"), "Q1", "http", ("https://www.wikidata.org/wiki/Q", "1")
    ),
    "holdfast_linker.entries._SEVERAL": use("split", " ", "\n", "|", " ;"),
    "holdfast_linker.envelope._CORRELATION_ID": use("fullmatch", "a"),
    "holdfast_linker.envelope._TRACE_ID": use("fullmatch", "a"),
    "holdfast_linker.envelope._SPAN_ID": use("fullmatch", "a"),
    "holdfast_linker.names._SPACE": use("sub", " ", "a "),
    "holdfast_linker.names._NOT_WORD": use("sub", " ", "a "),
    "holdfast_linker.names._INSIDE_WORDS": use("sub", "'", "a'"),
    "holdfast_linker.quickstatements._LANGUAGE": use("fullmatch", "a", ("en", "-a"), ("en-", "a")),
    "holdfast_linker.quickstatements._POINT": use("fullmatch", *POINTS, " "),
    "holdfast_linker.wikidata._ITEM_ID": use("fullmatch", ("Q", "1"), "Q"),
    "holdfast_linker.wikidata._ID": use("fullmatch", ("Q", "1"), "P"),
    "holdfast_linker.wikidata._OPERATORS": use("sub", "(", "a("),
    "holdfast_posts.analysis.text._LONG_RUN": use("search", "a", "ab", "aaaaaab", most=5_000),
    "holdfast_posts.analysis.text.WORD": use("findall", "a ", "a", "_", most=5_000),
    "holdfast_regulations.canonical._ESCAPE": use("sub", "%", "%a", "%41"),
    "holdfast_regulations.canonical._PLAIN": use(
        *("fullmatch", "a", "http", ("http://", "a"), ("http://", "a."), ("http://a.a", "a")),
        *(("http://a.a/", "a"), ("http://a.a/", "./"), ("http://", "a-.a")),
    ),
    "holdfast_regulations.canonical._DOTS": use("search", "/", "/.", "/..", "/..a"),
    # The first 1,024 bytes of a body.
    "holdfast_regulations.content._MARKUP": use(
        *("match", " ", "<", ("<?xml", " "), ("<?xml>", " "), "<!--", "<!---->", "<!-- --> "),
        *(("<?xml>", "<!---->"), ("<!--", "-"), ("<!--", "--> ")),
    ),
    "holdfast_regulations.content._FILE_NAMES": use("search", ".", ".pdf", ".xls"),
    # Titles are cut to 500 characters.
    "holdfast_regulations.content._SAYS_MISSING": use(
        *("search", "stranica", "sadržaj ", "tražen", "traženastranic", ("tražena ", "stranic")),
        *("404", "page not ", "not foun", "dokument nije "),
    ),
    "holdfast_regulations.dates._ISO": use(
        *("search", *DIGITS, "1", "2020-", "2020-01", "2020-01-01T", "2020-01-01T00:00"),
        *(("2020-01-01T00:00", "1"), "2020-01-011"),
    ),
    "holdfast_regulations.dates._NUMERIC": use(
        "search", *DIGITS, "1 ", ("1", " "), ("1.", " "), ("1.1.", " "), "1.", "1 . ", "1.1.11111"
    ),
    "holdfast_regulations.nesting._TAG": use("findall", "<", "</", "<a", "<" + "a" * 30),
    "holdfast_regulations.dates._WORDED": use(
        "findall", *DIGITS, "1 ", ("1", " "), ("1 ", "a"), ("1 a", " "), "1 a ", "1. a 20201"
    ),
    "holdfast_regulations.extract._decoded": use(
        *("search", "charset", ("charset", " "), "charset ", ("charset=", " "), "charset= "),
        most=2_048,
    ),
    "holdfast_regulations.sitemap.frontier._NUMBER": use("sub", "1", "a1"),
    "holdfast_regulations.sitemap.plain._ENTRY": use(
        *("split", "<url>", ("<url>", " "), "<url><loc>", ("<url><loc>", "a"), " "),
        *(("<url><loc>", "&amp;"), ("<url><loc></loc>", " "), "<url><loc></loc></url>", "<url> "),
        *("<url><loc></loc><priority>", ("<url><loc></loc>", "<priority></priority>")),
    ),
    "holdfast_regulations.sitemap.plain._HEAD": use(
        *("match", ("<?xml ", " "), ("<urlset ", " "), ("<urlset ", "a "), ("<urlset ", " xmlns=")),
        most=2_048,
    ),
    "holdfast_regulations.sitemap.plain._OTHER_ENCODING": use(
        "search", "encoding", ("encoding", " "), "encoding=", most=2_048
    ),
    "holdfast_regulations.sources._slug": use("fullmatch", "a", "a-", "-"),
    "holdfast_regulations.sources._host": use("fullmatch", "a", "a.", "-", ("a:", "1")),
    # Lines of a file that an operator wrote.
    "holdfast_regulations.sources_file._HEADER": use(
        *("match", " ", "[", ("[", " "), ("[", "a "), ("[a]", " "), ("[a] #", "#"), "[a]"),
    ),
    "holdfast_regulations.sources_file._KEY": use(
        *("match", " ", "a", "a.", ("a", " "), ("a.", " "), "a . ", '"', ('"', "a"), '"a"', "'"),
    ),
    "holdfast_regulations.sources_file._TOML_LINE": use(
        "search", "(at line ", ("(at line ", "1"), ("(at line 1, column ", "1")
    ),
    "features.accounts.signatures._PARTS": use(
        "fullmatch", "a", ("t=", "1"), ("t=1,n=", "a"), "t=1,n="
    ),
    "kernel.database.queries._HEADING": use(
        "split", "-- name: ", "\n", ("-- name: ", "a"), ("-- name: a", " "), most=100_000
    ),
    "kernel.database.queries._ROWS": use("search", "@rows(", ("@rows(", "a"), most=100_000),
    "kernel.database.queries._WORD": use("sub", "@", "a", "@a", most=100_000),
    "holdfast_client.connections._NUMBERED": use("sub", "$", "a", ("$", "b"), most=100_000),
    "tables.detect._UNDECODABLE": use("search", "a"),
    "tables.detect._FLAW": use("search", "a"),
    "tables.records._UNREADABLE": use("search", "a"),
    "tables.layout._KINDS": use(
        *("fullmatch", "1", "1 ", "1e", ("1e", "1"), "a", "a@", ("a@", "."), ("a@", ".aa")),
        *(("http://", "a"), ("2020-01-01T00:", "a"), ("1.1.2020 ", "a"), ("1:00:00.", "1")),
    ),
    "tables.layout._YEAR": use("fullmatch", "1"),
    "tables.layout._WHOLE": use("fullmatch", "1", ("1", " ")),
    "tables.layout._DIGITS": use("sub", ".", "1.", "a", most=100),
}
#: Patterns that the source puts together, and where their bound comes from.
BUILT = {
    "features.switches.kill_switches._SCOPE": (
        "made of two constants; a scope is all, or a prefix and a name"
    ),
    "holdfast_regulations.sources._pattern": (
        "an operator's own; URLs of 2,048, titles of 500 and short texts of 2,000 characters"
    ),
    "text_search.highlighted_parts": "at most 50 escaped words over the first 100,000 characters",
    "kernel.database.queries.compile_query": "our own SQL files",
    "holdfast_client.names._CALL": "our own SQL files",
    "holdfast_client.names._in_postgres": "our own SQL files",
    "holdfast_client.names._in_sqlite": "our own SQL files",
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
        for source in SOURCES
        for path in sorted(source.rglob("*.py"))
        for expression in _in_module(
            _module(source, path), ast.parse(path.read_text(encoding="utf-8"))
        )
    ]


def _module(source: Path, path: Path) -> str:
    """As it is imported, without `holdfast.`: several packages have a module `dates`."""
    return ".".join(path.relative_to(source).with_suffix("").parts)


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
