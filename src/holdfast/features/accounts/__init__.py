"""Who may do what: accounts, tokens, second factors, quotas."""

from holdfast.features.manifest import Command, Manifest

MANIFEST = Manifest(
    routes=("api_session", "api_usage", "api_users", "api_tokens"),
    pages=("pages_login", "pages_account", "pages_second_factor"),
    commands={
        "user": Command("commands", "Manage accounts for the API and the pages."),
        "token": Command("commands", "Manage API tokens."),
    },
)
