"""Every write boundary of the store and the console, read from its source.

For each method that is a `@verb`: the queries that its transaction may write, through whatever
functions it hands the transaction to, then "commit" and "committed". These are exactly the
pairs (verb, point) that the fault hook of `open_store` is called with.

What an extension writes is in transactions of these verbs too: its `save` in settle, `note` in
ingest, `plan` in plan, `conclude` in complete, `tend` in tend. `extension_points` reads those
writes from the files of its package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import holdfast.features
import holdfast.kernel
import holdfast_client
from holdfast.kernel.database.extension_folders import extension_folders

_PACKAGES = (holdfast.kernel, holdfast.features, holdfast_client)
FOLDERS = [Path(package.__path__[0]) for package in _PACKAGES]
_WRITES = ("run", "take", "run_many", "take_many")
_INDEX_STEPS = ("enqueue", "remove", "add", "dequeue")  # of a TextIndex
_Function = ast.AsyncFunctionDef | ast.FunctionDef | ast.ClassDef
_Names = dict[str, _Function]


def fault_points() -> dict[str, frozenset[str]]:
    """Verb -> the points at which its transaction can be stopped."""
    paths = [path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))]
    modules = {str(path): ast.parse(path.read_text()) for path in paths}
    found: dict[str, set[str]] = {}
    for tree in modules.values():
        for verb, body in _transactions(tree):
            points = found.setdefault(verb, {"commit", "committed"})
            points |= _points(body, _named(tree), _public(modules), set())
    return {verb: frozenset(points) for verb, points in sorted(found.items())}


def extension_points(name: str) -> set[str]:
    """The queries by which an extension's functions write, wherever they have a `tx`."""
    points: set[str] = set()
    for path in sorted(extension_folders()[name].glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call):
                points |= _extension_writes(call)
    return points


def _extension_writes(call: ast.Call) -> set[str]:
    if isinstance(call.func, ast.Attribute) and _is_transaction(call.func.value):
        return _written(call)
    if isinstance(call.func, ast.Name) and call.func.id == "TextIndex":
        return {f"{table}_{step}" for table in _constants(call.args[0]) for step in _INDEX_STEPS}
    return set()


def _transactions(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    for method in ast.walk(tree):
        if isinstance(method, ast.AsyncFunctionDef):
            for decorator in method.decorator_list:
                call = decorator if isinstance(decorator, ast.Call) else None
                name = call.func if call else decorator
                if isinstance(name, ast.Name) and name.id == "verb":
                    given = _constants(call.args[0]) if call and call.args else {method.name}
                    yield given.pop().lstrip("_"), method


def _points(
    function: _Function, local: _Names, public: dict[str, tuple[_Function, _Names]], seen: set[str]
) -> set[str]:
    points: set[str] = set()
    for call in ast.walk(function):
        if not isinstance(call, ast.Call):
            continue
        if isinstance(call.func, ast.Attribute) and _is_transaction(call.func.value):
            points |= _written(call)
        elif any(map(_is_transaction, call.args)):
            name = _called(call.func)
            if name in seen:
                continue
            if name in local:
                points |= _points(local[name], local, public, seen | {name})
            elif name in public:  # whose private functions are those of its own module
                called, others = public[name]
                points |= _points(called, others, public, seen | {name})
    return points


def _called(function: ast.expr) -> str:
    """A function, or a method of the same class; what a pipeline does is tested with it."""
    if isinstance(function, ast.Attribute):
        is_own = isinstance(function.value, ast.Name) and function.value.id == "self"
        return f"self.{function.attr}" if is_own else ""
    return function.id if isinstance(function, ast.Name) else ""


def _written(call: ast.Call) -> set[str]:
    name = _attribute(call)
    if name == "copy":
        return {f"copy {query}" for query in _constants(call.args[0])}
    return _constants(call.args[0]) if name in _WRITES else set()


def _constants(node: ast.expr) -> set[str]:
    return {
        leaf.value
        for leaf in ast.walk(node)
        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
    }


def _attribute(call: ast.Call) -> str | None:
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def _is_transaction(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "_tx"
    return isinstance(node, ast.Name) and node.id == "tx"


def _named(tree: ast.Module) -> _Names:
    functions = {node.name: node for node in tree.body if isinstance(node, _Function)}
    methods = {
        f"self.{node.name}": node
        for holder in tree.body
        if isinstance(holder, ast.ClassDef)
        for node in holder.body
        if isinstance(node, _Function)
    }
    return functions | methods


def _public(modules: dict[str, ast.Module]) -> dict[str, tuple[_Function, _Names]]:
    """Each with the functions of its module."""
    return {
        name: (node, _named(tree))
        for tree in modules.values()
        for name, node in _named(tree).items()
        if not name.startswith(("_", "self."))
    }
