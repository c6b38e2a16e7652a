"""Checks that docstrings are English sentences; `make check` runs it.

The docstring of a function begins with a sentence that has a verb: "Returns ...", "Whether ...", or
a subject and a verb. The docstring of a module, a class or a property may be a noun phrase. None
begins with a preposition or a participle that needs the name above it ("Of two that ...").
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKED = (
    "src",
    "client/src",
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("pipelines/*/src")),
    "bench",
    "examples",
    "tools",
)


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


DANGLING = _words_of(
    """
    above across after against along also among and around as at before behind below beneath
    beside besides between beyond but by despite during except for from in inside into like near
    not of off on onto or out outside over past per since than then through throughout to toward
    under unlike until up upon via with within without whose whom
    """
)
#: These begin a clause that has a verb, but is not a sentence ("What a worker knows.").
CLAUSES = _words_of(
    """
    that which who whose whom where when what how why whatever whichever
    """
)
SUBORDINATING = CLAUSES | {"if", "because", "while", "whether"}
CONDITIONS = {"if", "when", "while", "once"}
AUXILIARIES = _words_of(
    """
    is are was were am has have had does do did can cannot could may might must shall should
    will would isn't aren't doesn't don't can't goes went came became took gave made found lost
    kept said wrote let
    """
)
PARTICIPLES = _words_of(
    """
    begun bought broken brought built caught chosen cut done drawn driven found given gone held
    hidden kept known left lent lost made meant met paid put said seen sent shown sold spent
    split stolen taken thrown told understood written
    """
)
#: A word after one of these belongs to the same verb ("can be read"), or is an infinitive.
WITHIN_A_VERB = AUXILIARIES | {"to", "be", "been", "not"}
NO_GERUNDS = {"anything", "everything", "nothing", "pending", "something", "string"}
NO_PARTICIPLES = {
    "embed",
    "exceed",
    "feed",
    "need",
    "proceed",
    "raised",
    "red",
    "seed",
    "speed",
    "used",
}
AFTER_PARTICIPLES = DANGLING | SUBORDINATING | {"a", "an", "the", "again", "once", "only", "to"}
AFTER_A_NOUN = DANGLING | {"that", "which", "who", "is", "are", "was", "were", "has", "have"}


def _inflected(verb: str) -> str:
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def _read_verbs() -> tuple[set[str], set[str]]:
    """Returns all verbs, and those that are never nouns."""
    lines = (Path(__file__).parent / "verbs.txt").read_text().splitlines()
    words = " ".join(line for line in lines if not line.startswith("#")).split()
    plain = [word for word in words if not word.endswith("*")]
    every = plain + [word[:-1] for word in words if word.endswith("*")]
    return (
        {*every, *map(_inflected, every)},
        {*plain, *map(_inflected, plain), *AUXILIARIES},
    )


VERBS, ONLY_VERBS = _read_verbs()


def first_sentence(docstring: str) -> str:
    paragraph = docstring.strip().split("\n\n")[0]
    text = re.sub(r"``.*?``|`[^`]*`", "Code", " ".join(paragraph.split()))
    return re.split(r"(?<=[.!?:;])\s", text)[0]


def _words(sentence: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[\w'-]+", sentence)]


def _begins_with_a_verb(words: list[str]) -> bool:
    if words[0] not in VERBS and words[0] not in ONLY_VERBS:
        return False
    follows = words[1] if len(words) > 1 else ""
    return words[0] in ONLY_VERBS or follows not in AFTER_A_NOUN


def _is_bare_participle(words: list[str]) -> bool:
    """Whether the first word is a participle without a noun ("Refused while", "Sent by")."""
    is_participle = words[0] in PARTICIPLES or words[0].endswith("ed")
    if not is_participle or words[0] in NO_PARTICIPLES:
        return False
    return len(words) == 1 or words[1] in AFTER_PARTICIPLES


def has_verb(sentence: str) -> bool:
    """Whether the main clause has a verb, as far as a count of verbs and clauses can tell."""
    words = _words(sentence)
    if words[0] == "whether" or _begins_with_a_verb(words):
        return True
    if words[0] in CONDITIONS and ", " in sentence:
        return has_verb(sentence.partition(", ")[2])
    pairs = zip(["", *words], words, strict=False)
    verbs = [word in ONLY_VERBS and before not in WITHIN_A_VERB for before, word in pairs]
    clauses = [word in SUBORDINATING for word in words]
    main = clauses.index(True) if any(clauses) else len(words)
    return any(verbs[:main]) or sum(verbs) > sum(clauses)


def fault_of(docstring: str, *, may_be_noun: bool) -> str | None:
    """Returns what is wrong with the first sentence, or None."""
    sentence = first_sentence(docstring)
    words = _words(sentence)
    if not words:
        return "is empty"
    first = words[0]
    if first in DANGLING:
        return f'begins with "{first}"'
    if first.endswith("ing") and first not in NO_GERUNDS:
        return f'begins with the gerund "{first}"'
    if _is_bare_participle(words):
        return f'begins with the participle "{first}"'
    if not may_be_noun and not has_verb(sentence):
        return "has no verb in its main clause"
    return None


def _is_property(node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def faults(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yields the line, the fault and the first sentence of each faulty docstring."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node)
        if docstring is None:
            continue
        may_be_noun = isinstance(node, ast.Module | ast.ClassDef) or _is_property(node)
        if fault := fault_of(docstring, may_be_noun=may_be_noun):
            yield node.body[0].lineno, fault, first_sentence(docstring)


def main(folders: list[str]) -> int:
    """Prints the faults of all files in the folders; returns the exit status."""
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [(path, *fault) for path in paths for fault in faults(path)]
    for path, line, fault, sentence in found:
        print(f"{path.relative_to(ROOT)}:{line}: docstring {fault}: {sentence}")
    if found:
        print(f"{len(found)} docstrings. A verb that is missing: add it to tools/verbs.txt.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(CHECKED)))
