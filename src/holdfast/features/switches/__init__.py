"""Kill switches and flags."""

from holdfast.features.manifest import Command, Manifest

MANIFEST = Manifest(
    routes=("api_kill_switches", "api_flags"),
    commands={
        "kill-switch": Command("commands_kill_switch", "Stop everything, a pipeline or a source."),
        "flag": Command("commands_flags", "Show and change values while processes run."),
    },
)
