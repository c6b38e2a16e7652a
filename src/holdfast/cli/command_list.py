"""Lists every command of the program without importing any; the one that is run is imported."""

from __future__ import annotations

from typing import NamedTuple


class Listed(NamedTuple):
    module: str
    line: str  # its text in `holdfast --help`, short enough for one line


#: In the order in which `holdfast --help` lists them.
COMMANDS = {
    "run": Listed("cli.run", "Read records in, process them, write the results."),
    "open": Listed("cli.standing", "Open a standing job, which accepts records at any time."),
    "add": Listed("cli.standing", "Add records to a standing job."),
    "jobs": Listed("features.jobs.commands", "List the jobs, newest first."),
    "show": Listed("features.jobs.commands", "Show a job: state, counters, and what it waits for."),
    "items": Listed("features.items.commands", "List the items of a job, or one with its history."),
    "export": Listed("features.exports.commands", "Write the results of a job to a file."),
    "pause": Listed("features.jobs.commands_actions", "Pause a job."),
    "resume": Listed("features.jobs.commands_actions", "Continue a paused, failed or capped job."),
    "cancel": Listed("features.jobs.commands_actions", "Cancel a job permanently."),
    "reprocess": Listed("features.jobs.commands_actions", "Process finished items again."),
    "kill-switch": Listed(
        "features.switches.commands_kill_switch", "Stop everything, a pipeline or a source."
    ),
    "dead": Listed("features.dead_letters.commands", "Items and messages that were set aside."),
    "delete": Listed(
        "features.deletion.commands", "Delete jobs, files, exports and people's data."
    ),
    "retention": Listed(
        "features.deletion.commands_retention", "Show what the retention policies would delete."
    ),
    "ingest": Listed(
        "features.ingestion.commands", "Take files from folders, FTP servers and buckets."
    ),
    "schedule": Listed("features.schedules.commands", "Start jobs at set times."),
    "flag": Listed("features.switches.commands_flags", "Values that can be changed at run time."),
    "up": Listed("cli.up", "Run everything on this host: pages, API, workers."),
    "api": Listed("cli.serve", "Serve the pages and the HTTP API."),
    "work": Listed("cli.work", "Process the running jobs of the given pipelines."),
    "consume": Listed("cli.consume", "Take messages of other programs from their queues."),
    "relay": Listed("cli.relay", "Send the messages in the outbox to the broker."),
    "timers": Listed("cli.timers", "Run upkeep and start scheduled jobs."),
    "broker": Listed("cli.broker", "Maintain the RabbitMQ queues."),
    "user": Listed("features.accounts.commands", "Manage accounts for the API and the pages."),
    "token": Listed("features.accounts.commands", "Manage API tokens."),
    "migrate": Listed("cli.migrate", "Upgrade or downgrade the database schema."),
    "doctor": Listed("cli.doctor", "Check the installation and say how to fix it."),
    "settings": Listed("cli.settings", "List every setting with its value and meaning."),
}
