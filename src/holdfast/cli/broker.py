"""`holdfast broker`: maintenance of the RabbitMQ queues."""

from __future__ import annotations

import typer

from holdfast.cli.opening import require_broker, run_async, settings_from_environment
from holdfast.cli.output import errors


def register(app: typer.Typer) -> None:
    family = typer.Typer(no_args_is_help=True, help="Maintain the RabbitMQ queues.")
    # With a callback, a group of one command remains a group.
    family.callback()(_broker)
    family.command("reset")(reset)
    app.add_typer(family, name="broker")


def _broker() -> None:
    pass


def reset(
    queue: str = typer.Argument(..., metavar="QUEUE", help="Name of the queue."),
    force: bool = typer.Option(
        False, "--force", help="Delete it even if it holds messages, which are lost."
    ),
) -> None:
    """Create a queue again, with the arguments it needs.

    It is deleted first. RabbitMQ cannot change the arguments of a queue.
    """
    settings = settings_from_environment()
    url = require_broker(settings)
    # Only here: commands that need no broker should not import it.
    from holdfast.messaging.queue_checks import reset_queue

    dropped = run_async(reset_queue(url, settings.queue_prefix, queue, force))
    errors.print(f"Created queue {queue} again; {dropped:,} messages were dropped.", markup=False)
