"""The one polite HTTP client: `ctx.http`."""

from holdfast.http.client import Gates, HttpClient
from holdfast.http.options import HttpOptions
from holdfast.http.reply import Reply

__all__ = ["Gates", "HttpClient", "HttpOptions", "Reply"]
