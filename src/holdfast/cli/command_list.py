"""Lists every command of the program without importing any; the one that is run is imported."""

from __future__ import annotations

from typing import NamedTuple


class Listed(NamedTuple):
    module: str
    line: str  # its text in `holdfast --help`, short enough for one line


#: In the order in which `holdfast --help` lists them.
COMMANDS = {
    "run": Listed("run", "Read records in, process them, write the results."),
    "open": Listed("standing", "Open a standing job, which accepts records at any time."),
    "add": Listed("standing", "Add records to a standing job."),
    "jobs": Listed("jobs", "List the jobs, newest first."),
    "show": Listed("jobs", "Show a job: state, counters, and what it waits for."),
    "items": Listed("items", "List the items of a job, or one with its history."),
    "export": Listed("export", "Write the results of a job to a file."),
    "pause": Listed("job_actions", "Pause a job."),
    "resume": Listed("job_actions", "Continue a paused, failed or capped job."),
    "cancel": Listed("job_actions", "Cancel a job permanently."),
    "reprocess": Listed("job_actions", "Process finished items again."),
    "kill-switch": Listed("kill_switch", "Stop everything, a pipeline or a source."),
    "dead": Listed("dead_letters", "Items and messages that were set aside."),
    "delete": Listed("deletion", "Delete jobs, files, exports and people's data."),
    "retention": Listed("retention", "Show what the retention policies would delete."),
    "ingest": Listed("ingest", "Take files from folders, FTP servers and buckets."),
    "schedule": Listed("schedules", "Start jobs at set times."),
    "flag": Listed("flags", "Values that can be changed at run time."),
    "up": Listed("up", "Run everything on this host: pages, API, workers."),
    "api": Listed("serve", "Serve the pages and the HTTP API."),
    "work": Listed("work", "Process the running jobs of the given pipelines."),
    "consume": Listed("consume", "Take messages of other programs from their queues."),
    "relay": Listed("relay", "Send the messages in the outbox to the broker."),
    "timers": Listed("timers", "Run upkeep and start scheduled jobs."),
    "broker": Listed("broker", "Maintain the RabbitMQ queues."),
    "user": Listed("accounts", "Manage accounts for the API and the pages."),
    "token": Listed("accounts", "Manage API tokens."),
    "migrate": Listed("migrate", "Upgrade or downgrade the database schema."),
    "doctor": Listed("doctor", "Check the installation and say how to fix it."),
    "settings": Listed("settings", "List every setting with its value and meaning."),
}
