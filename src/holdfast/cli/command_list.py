"""Lists every command of the program without importing any; the one that is run is imported."""

from __future__ import annotations

from holdfast.features.manifest import Command, manifests

#: Those that belong to no feature. All of them, in the order in which `holdfast --help` lists them.
_OWN = {
    "run": Command("run", "Read records in, process them, write the results."),
    "open": Command("standing", "Open a standing job, which accepts records at any time."),
    "add": Command("standing", "Add records to a standing job."),
    "up": Command("up", "Run everything on this host: pages, API, workers."),
    "api": Command("serve", "Serve the pages and the HTTP API."),
    "work": Command("work", "Process the running jobs of the given pipelines."),
    "consume": Command("consume", "Take messages of other programs from their queues."),
    "relay": Command("relay", "Send the messages in the outbox to the broker."),
    "timers": Command("timers", "Run upkeep and start scheduled jobs."),
    "broker": Command("broker", "Maintain the RabbitMQ queues."),
    "migrate": Command("migrate", "Upgrade or downgrade the database schema."),
    "doctor": Command("doctor", "Check the installation and say how to fix it."),
    "settings": Command("settings", "List every setting with its value and meaning."),
}
_ORDER = (
    "run", "open", "add", "jobs", "show", "items", "export", "pause", "resume", "cancel",
    "reprocess", "kill-switch", "dead", "delete", "retention", "ingest", "schedule", "flag", "up",
    "api", "work", "consume", "relay", "timers", "broker", "user", "token", "migrate", "doctor",
    "settings",
)  # fmt: skip


def _all() -> dict[str, Command]:
    """Returns the commands by name, each with the whole name of its module."""
    found = {name: Command(f"holdfast.cli.{own.module}", own.line) for name, own in _OWN.items()}
    for folder, manifest in manifests():
        for name, command in manifest.commands.items():
            found[name] = Command(f"{folder}.{command.module}", command.line)
    return {name: found[name] for name in (*_ORDER, *sorted(found.keys() - set(_ORDER)))}


COMMANDS = _all()
