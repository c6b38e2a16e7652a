"""`user` and `token`: who may use the API and the pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import typer

from holdfast.cli.composition import (
    ensure_schema,
    opened_store,
    run_async,
    settings_from_environment,
)
from holdfast.cli.inspecting import ready_settings
from holdfast.cli.output import JSON_OPTION, console, errors, print_json, print_table
from holdfast.console import open_console
from holdfast.console.accounts import Accounts, Role
from holdfast.errors import NotThere
from holdfast.store import Store

T = TypeVar("T")
_NAME = typer.Argument(..., metavar="NAME", help="The account's name.")
_DAY_SECONDS = 86_400.0


def register(app: typer.Typer) -> None:
    user = typer.Typer(no_args_is_help=True, help="Accounts of the API and the pages.")
    user.command("add")(user_add)
    user.command("list")(user_list)
    user.command("disable")(user_disable)
    user.command("link")(user_link)
    app.add_typer(user, name="user")
    token = typer.Typer(no_args_is_help=True, help="Tokens with which programs use the API.")
    token.command("create")(token_create)
    token.command("list")(token_list)
    token.command("revoke")(token_revoke)
    app.add_typer(token, name="token")


def _with_accounts(action: Callable[[Accounts, Store, str], Awaitable[T]]) -> T:
    settings = settings_from_environment()
    ensure_schema(settings)

    async def main() -> T:
        async with opened_store(settings) as store:
            accounts = Accounts(open_console(store).people, settings.session_hours * 3600.0)
            return await action(accounts, store, settings.owner)

    return run_async(main())


def user_add(
    name: str = _NAME,
    role: str = typer.Option("operator", "--role", help="admin, operator or reader."),
    password: bool = typer.Option(
        True, "--password/--no-password", help="Ask for a password, or let them in by link only."
    ),
) -> None:
    """Add an account."""
    typed = (
        typer.prompt("Password", hide_input=True, confirmation_prompt=True) if password else None
    )

    async def action(accounts: Accounts, store: Store, actor: str) -> None:
        await accounts.add_user(name, role, typed, actor)

    _with_accounts(action)
    told = "" if typed else f" `holdfast user link {name}` lets them in."
    errors.print(f"User {name} is {Role(role)}.{told}", markup=False)


def user_list(as_json: bool = JSON_OPTION) -> None:
    """List the accounts."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            found = await open_console(store).people.users()
        if as_json:
            print_json([user._asdict() for user in found])
            return
        rows = [
            (user.name, user.role, "yes" if user.has_password else "no",
             "disabled" if user.disabled else "", user.created_at)
            for user in found
        ]  # fmt: skip
        print_table(
            ("name", "role", "password", "", "since"),
            rows,
            "No accounts. `holdfast api` makes the first one.",
        )

    run_async(main())


def user_disable(name: str = _NAME) -> None:
    """Shut an account: its sessions and tokens are worth nothing any more. Its jobs stay."""

    async def action(accounts: Accounts, store: Store, actor: str) -> None:
        await accounts.change_user(name, actor, disabled=True)

    _with_accounts(action)
    errors.print(f"User {name} is disabled.", markup=False)


def user_link(
    name: str = _NAME,
    url: str = typer.Option("http://127.0.0.1:8000", "--url", help="Where the server listens."),
) -> None:
    """Print a link that lets the account in once, within a day."""

    async def action(accounts: Accounts, store: Store, actor: str) -> str:
        return await accounts.make_link(name, actor)

    link = _with_accounts(action)
    console.print(f"{url.rstrip('/')}/login/{link}", markup=False, soft_wrap=True)


def token_create(
    user: str = typer.Argument(..., metavar="USER", help="Whose it is; it may what they may."),
    name: str = typer.Option(..., "--name", help="What it is for."),
    days: int | None = typer.Option(None, "--days", min=1, help="Good for so many days."),
) -> None:
    """Make a token and print it, this once."""

    async def action(accounts: Accounts, store: Store, actor: str) -> str:
        seconds = None if days is None else days * _DAY_SECONDS
        return (await accounts.make_token(user, name, seconds, actor)).value

    console.print(_with_accounts(action), markup=False, soft_wrap=True)


def token_list(as_json: bool = JSON_OPTION) -> None:
    """List the tokens."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            found = await open_console(store).people.tokens()
        if as_json:
            print_json([token._asdict() for token in found])
            return
        print_table(
            ("id", "user", "name", "made", "expires", "last used", "revoked"),
            [tuple(token) for token in found],
            "No tokens. Make one: holdfast token create USER --name WHAT-FOR",
        )

    run_async(main())


def token_revoke(
    token_id: int = typer.Argument(..., metavar="ID", help="As `holdfast token list` shows it."),
) -> None:
    """Revoke a token, at once and for good."""

    async def action(accounts: Accounts, store: Store, actor: str) -> None:
        if token_id not in {token.id for token in await open_console(store).people.tokens()}:
            raise NotThere(f"there is no token {token_id}", "`holdfast token list` lists them.")
        await open_console(store).people.revoke_token(token_id, actor)

    _with_accounts(action)
    errors.print(f"Token {token_id} is revoked.", markup=False)
