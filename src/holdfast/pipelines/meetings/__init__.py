"""Meetings: every page of every agenda and minutes of a municipality, from Datasette sites."""

from holdfast.pipelines.meetings.options import MeetingsOptions
from holdfast.pipelines.meetings.pipeline import Meetings

__all__ = ["Meetings", "MeetingsOptions"]
