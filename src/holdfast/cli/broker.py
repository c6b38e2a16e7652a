"""`broker`: what a person does with the queues themselves."""

from __future__ import annotations

import typer

from holdfast.cli.composition import run_async, settings_from_environment
from holdfast.cli.output import errors
from holdfast.errors import UserError


def register(app: typer.Typer) -> None:
    family = typer.Typer(no_args_is_help=True, help="The queues of RabbitMQ.")
    # With a callback, a family of one command stays a family.
    family.callback()(_broker)
    family.command("reset")(reset)
    app.add_typer(family, name="broker")


def _broker() -> None:
    pass


def reset(
    queue: str = typer.Argument(..., metavar="interactive|bulk|discover|dead", help="Which one."),
    force: bool = typer.Option(False, "--force", help="Even if it holds messages; they are lost."),
) -> None:
    """Delete a queue that has other arguments than Holdfast needs, and declare it anew."""
    # Not above: the commands that need no broker start without it.
    from holdfast.messaging.queue_checks import reset_queue

    settings = settings_from_environment()
    if settings.broker_url is None:
        raise UserError(
            "no broker is set, so there are no queues",
            "Set HOLDFAST_BROKER_URL, e.g. amqp://USER:PASSWORD@HOST/VHOST.",
        )
    dropped = run_async(reset_queue(settings.broker_url, settings.queue_prefix, queue, force))
    errors.print(f"The queue {queue} is new and empty; {dropped:,} messages dropped.", markup=False)
