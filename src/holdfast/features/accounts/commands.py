"""`holdfast user` and `holdfast token`: who may use the API and the pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.opening import (
    ensure_schema,
    opened_store,
    ready_settings,
    run_async,
    settings_from_environment,
)
from holdfast.cli.output import console, errors, print_json, print_table
from holdfast.clock import SystemClock
from holdfast.errors import NotThere
from holdfast.features.accounts.accounts import Accounts, Role
from holdfast.features.accounts.compose import accounts_of, second_factors_of
from holdfast.features.console import open_console
from holdfast.kernel import Store

T = TypeVar("T")
_NAME = typer.Argument(..., metavar="NAME", help="Name of the account.")
_DAY_SECONDS = 86_400.0


def register(app: typer.Typer) -> None:
    user = typer.Typer(no_args_is_help=True, help="Manage accounts for the API and the pages.")
    user.command("add")(user_add)
    user.command("list")(user_list)
    user.command("disable")(user_disable)
    user.command("link")(user_link)
    user.command("reset-second-factor")(user_reset_second_factor)
    app.add_typer(user, name="user")
    token = typer.Typer(no_args_is_help=True, help="Manage API tokens.")
    token.command("create")(token_create)
    token.command("list")(token_list)
    token.command("revoke")(token_revoke)
    app.add_typer(token, name="token")


def _with_accounts(action: Callable[[Accounts, Store, str], Awaitable[T]]) -> T:
    settings = settings_from_environment()
    ensure_schema(settings)

    async def main() -> T:
        async with opened_store(settings) as store:
            accounts = accounts_of(open_console(store), settings, SystemClock())
            return await action(accounts, store, settings.owner)

    return run_async(main())


def user_add(
    name: str = _NAME,
    role: str = typer.Option("operator", "--role", help="admin, operator or reader."),
    password: bool = typer.Option(
        True, "--password/--no-password", help="Ask for a password, or allow login by link only."
    ),
) -> None:
    """Add an account."""
    typed = (
        typer.prompt("Password", hide_input=True, confirmation_prompt=True) if password else None
    )

    async def action(accounts: Accounts, store: Store, actor: str) -> None:
        await accounts.add_user(name, role, typed, actor)

    _with_accounts(action)
    hint = "" if typed else f" Create a login link with: holdfast user link {name}"
    errors.print(f"Added user {name} with role {Role(role)}.{hint}", markup=False)


def user_list(as_json: bool = JSON) -> None:
    """List the accounts."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            users = await open_console(store).people.users()
        if as_json:
            print_json([user._asdict() for user in users])
            return
        rows = [
            (user.name, user.role, "yes" if user.has_password else "no",
             "disabled" if user.disabled else "", user.created_at)
            for user in users
        ]  # fmt: skip
        print_table(
            ("name", "role", "password", "", "since"),
            rows,
            "No accounts. `holdfast api` creates the first one.",
        )

    run_async(main())


def user_disable(name: str = _NAME) -> None:
    """Disable an account.

    Its sessions and tokens stop working. Its jobs are kept.
    """

    async def action(accounts: Accounts, store: Store, actor: str) -> None:
        await accounts.change_user(name, actor, disabled=True)

    _with_accounts(action)
    errors.print(f"User {name} is disabled.", markup=False)


def user_link(
    name: str = _NAME,
    url: str = typer.Option("http://127.0.0.1:8000", "--url", help="Address of the server."),
) -> None:
    """Print a login link that works once, within a day."""

    async def action(accounts: Accounts, store: Store, actor: str) -> str:
        return await accounts.make_link(name, actor)

    link = _with_accounts(action)
    console.print(f"{url.rstrip('/')}/login/{link}", markup=False, soft_wrap=True)


def user_reset_second_factor(name: str = _NAME) -> None:
    """Remove a lost second factor.

    The user logs in without one, and can set up another.
    """

    async def action(accounts: Accounts, store: Store, actor: str) -> bool:
        factors = second_factors_of(open_console(store), SystemClock())
        return await factors.remove_second_factor(name, actor)

    if not _with_accounts(action):
        raise NotThere(f"{name} has no second factor", "`holdfast user list` lists the accounts.")
    errors.print(f"User {name} no longer has a second factor.", markup=False)


def token_create(
    user: str = typer.Argument(
        ..., metavar="USER", help="The user it belongs to; it has the same permissions."
    ),
    name: str = typer.Option(..., "--name", help="What the token is for."),
    days: int | None = typer.Option(None, "--days", min=1, help="Expire after N days."),
) -> None:
    """Create a token and print it. It cannot be shown again."""

    async def action(accounts: Accounts, store: Store, actor: str) -> str:
        seconds = None if days is None else days * _DAY_SECONDS
        return (await accounts.make_token(user, name, seconds, actor)).value

    console.print(_with_accounts(action), markup=False, soft_wrap=True)


def token_list(as_json: bool = JSON) -> None:
    """List the tokens."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            tokens = await open_console(store).people.tokens()
        if as_json:
            print_json([token._asdict() for token in tokens])
            return
        print_table(
            ("id", "user", "name", "created", "expires", "last used", "revoked"),
            [tuple(token) for token in tokens],
            "No tokens. Create one: holdfast token create USER --name PURPOSE",
        )

    run_async(main())


def token_revoke(
    token_id: int = typer.Argument(
        ..., metavar="ID", help="Number of the token, as shown by `holdfast token list`."
    ),
) -> None:
    """Revoke a token immediately and permanently."""

    async def action(accounts: Accounts, store: Store, actor: str) -> None:
        if token_id not in {token.id for token in await open_console(store).people.tokens()}:
            raise NotThere(f"there is no token {token_id}", "List them with: holdfast token list")
        await open_console(store).people.revoke_token(token_id, actor)

    _with_accounts(action)
    errors.print(f"Token {token_id} is revoked.", markup=False)
