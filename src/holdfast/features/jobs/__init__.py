"""Jobs as people see, start and change them."""

from holdfast.features.manifest import Command, Manifest

MANIFEST = Manifest(
    routes=("api_pipelines", "api", "api_actions", "api_streams", "api_events"),
    pages=("pages_list", "pages_job", "pages_actions", "pages_new_job", "pages_streams"),
    commands={
        "jobs": Command("commands", "List the jobs, newest first."),
        "show": Command("commands", "Show a job: state, counters, and what it waits for."),
        "pause": Command("commands_actions", "Pause a job."),
        "resume": Command("commands_actions", "Continue a paused, failed or capped job."),
        "cancel": Command("commands_actions", "Cancel a job permanently."),
        "reprocess": Command("commands_actions", "Process finished items again."),
    },
)
