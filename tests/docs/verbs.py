"""The transactions of the kernel, read from the source: what each locks, and what it writes.

A verb hands its transaction to functions, which run named queries; the tables are those of these
queries' texts, on either database. What a pipeline writes with it (`save`, `note`) is not seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import holdfast.kernel
import holdfast_client
from holdfast.kernel.database.queries import CORE_FOLDERS, load_queries

STORE = Path(holdfast.kernel.__path__[0])
CLIENT = Path(holdfast_client.__path__[0])
#: Where the verbs of the kernel are: of jobs, records, work, workers, gates and messages.
KERNEL = (
    "jobs/jobs", "record/ingest", "arrivals/enqueue", "arrivals/idempotency", "record/leases",
    "record/outcomes", "record/counters", "worker/workers", "gates/table", "outbox/messages",
    "outbox/nudges",
)  # fmt: skip
_WRITTEN = re.compile(r"\b(?:insert into|delete from) (\w+)|\bupdate (\w+)\s+set\b")
_LOCKED = re.compile(r"\bfrom\s+(\w+)[^;]*\bfor (?:no key update|key share|update|share)\b")
_ADVISORY = re.compile(r"\bpg_(?:try_)?advisory_xact_lock")
_INNER = re.compile(r"\((?:(?!\bfor update)[^()])*\)")  # what a subquery reads is not locked
_FUNCTION = re.compile(r"create or replace function (\w+)\(.*?\$\$(.*?)\$\$", re.DOTALL)
_Function = ast.AsyncFunctionDef | ast.FunctionDef
_Names = dict[str, _Function]


class Verb(NamedTuple):
    """`locks`: tables of which it locks rows before it writes, and "advisory"."""

    locks: frozenset[str]
    writes: frozenset[str]


def kernel_verbs() -> dict[str, Verb]:
    paths = [*sorted(STORE.rglob("*.py")), *CLIENT.glob("*.py")]
    trees = {path: ast.parse(path.read_text()) for path in paths}
    modules = {_name(path): trees[path] for path in paths if path.is_relative_to(STORE)}
    public = {
        name: (function, functions)
        for functions in map(_functions, trees.values())
        for name, function in functions.items()
        if not name.startswith(("_", "self."))
    }
    return {
        name: _verb(_queries_of(method, _functions(modules[module]), public, set()))
        for module in KERNEL
        for name, method in _verbs_in(modules[module])
    }


def _name(path: Path) -> str:
    return str(path.relative_to(STORE).with_suffix(""))


def _verb(names: set[str]) -> Verb:
    texts = [_text_of(name) for name in sorted(names)]
    locks = {table for text in texts for table in _LOCKED.findall(_outer(text))}
    locks |= {"advisory" for text in texts if _ADVISORY.search(text)}
    writes = {table for text in texts for pair in _WRITTEN.findall(text) for table in pair if table}
    return Verb(frozenset(locks), frozenset(writes))


def _outer(text: str) -> str:
    without = _INNER.sub("", text)
    return text if without == text else _outer(without)


@cache
def _text_of(query: str) -> str:
    """On both databases, with the functions of the database that it calls."""
    if query.startswith("insert into"):
        return query
    texts = [load_queries(dialect, CORE_FOLDERS).get(query) for dialect in ("sqlite", "postgres")]
    sql = ";\n".join(text.sql for text in texts if text is not None) or query
    sql = sql.replace("holdfast.", "").replace("holdfast_", "")
    bodies = [body for name, body in _database_functions() if f"{name}(" in sql]
    return ";\n".join([sql, *bodies])


@cache
def _database_functions() -> list[tuple[str, str]]:
    return _FUNCTION.findall((STORE / "database" / "schema" / "functions.sql").read_text())


def _verbs_in(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    for method in ast.walk(tree):
        if isinstance(method, ast.AsyncFunctionDef):
            for decorator in method.decorator_list:
                call = decorator if isinstance(decorator, ast.Call) else None
                name = call.func if call else decorator
                if isinstance(name, ast.Name) and name.id == "verb":
                    given = list(map(_text, call.args)) if call else []
                    yield "".join(given) or method.name.lstrip("_"), method


def _queries_of(
    function: _Function, local: _Names, public: dict[str, tuple[_Function, _Names]], seen: set[str]
) -> set[str]:
    names: set[str] = set()
    for call in ast.walk(function):
        if not isinstance(call, ast.Call):
            continue
        if isinstance(call.func, ast.Attribute) and _is_transaction(call.func.value):
            given = set().union(*(_texts(node, function) for node in call.args[:1]))
            is_copy = call.func.attr == "copy"
            names |= {f"insert into {table}" for table in given} if is_copy else given
        elif any(map(_is_transaction, call.args)):
            for name in _called(call.func, function) - seen:
                seen.add(name)
                if name in local:
                    names |= _queries_of(local[name], local, public, seen)
                elif name in public:  # whose private functions are those of its own module
                    names |= _queries_of(*public[name], public, seen)
    return names


def _functions(tree: ast.Module) -> _Names:
    """Methods as `self.NAME`."""
    functions = {node.name: node for node in tree.body if isinstance(node, _Function)}
    for holder in tree.body:
        if isinstance(holder, ast.ClassDef):
            methods = [node for node in holder.body if isinstance(node, _Function)]
            functions |= {f"self.{method.name}": method for method in methods}
    return functions


def _called(callee: ast.expr, function: _Function) -> set[str]:
    """A function, one of several that a variable may stand for, or a method of the same class."""
    if isinstance(callee, ast.Attribute):
        is_own = isinstance(callee.value, ast.Name) and callee.value.id == "self"
        return {f"self.{callee.attr}"} if is_own else set()
    if not isinstance(callee, ast.Name):
        return set()
    values = [leaf for value in _values(callee, function) for leaf in ast.walk(value)]
    return {callee.id} | {leaf.id for leaf in values if isinstance(leaf, ast.Name)}


def _texts(node: ast.expr, function: _Function) -> set[str]:
    """The texts that an expression may be, or a variable in it stand for."""
    leaves = list(ast.walk(node))
    for leaf in list(leaves):
        if isinstance(leaf, ast.Name):
            leaves += [part for value in _values(leaf, function) for part in ast.walk(value)]
    return set(filter(None, map(_text, leaves)))


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _values(name: ast.Name, function: _Function) -> list[ast.expr]:
    """What is assigned to a variable of the function."""
    return [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name.id for target in node.targets)
    ]


def _is_transaction(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "tx"
