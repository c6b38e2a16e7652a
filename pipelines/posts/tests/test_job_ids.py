"""The project of every form of job id."""

from __future__ import annotations

import pytest

from holdfast_posts.job_ids import Method, attribute, is_uuid

UUID = "550e8400-e29b-41d4-a716-446655440000"


@pytest.mark.parametrize(
    ("job_id", "stated", "project", "method", "disagrees"),
    [
        ("proj_xyz-brand-0", None, "proj_xyz", Method.SPLIT, False),
        ("proj_xyz-brand-0", "proj_xyz", "proj_xyz", Method.PAYLOAD, False),
        ("proj_xyz-toyota-12", "proj_xyz", "proj_xyz", Method.PAYLOAD, False),
        ("proj_x-mercedes-benz-3", "proj_x", "proj_x", Method.PAYLOAD, False),
        # Without the payload's project, the hyphen of the competitor cannot be told apart.
        ("proj_x-mercedes-benz-3", None, "proj_x-mercedes", Method.SPLIT, False),
        ("my-proj-brand-1", "my-proj", "my-proj", Method.PAYLOAD, False),
        ("my-proj-brand-1", None, "my-proj", Method.SPLIT, False),
        (UUID, None, None, Method.DRY_RUN, False),
        (UUID.upper(), None, None, Method.DRY_RUN, False),
        (UUID, "proj_x", None, Method.DRY_RUN, True),
        (f"{UUID}-brand-0", None, UUID, Method.UUID, False),
        (f"{UUID.upper()}-brand-0", None, UUID, Method.UUID, False),
        (f"{UUID.upper()}-brand-0", UUID, UUID, Method.PAYLOAD, False),
        (f"{UUID}-competitor-mercedes-benz-3", None, UUID, Method.UUID, False),
        (f"{UUID}-competitor-mercedes-benz-3", "proj_x", UUID, Method.UUID, True),
        ("proj_a-brand-0", "proj_b", "proj_a", Method.SPLIT, True),
        # The project is a beginning of the job id, but not a whole part of it.
        ("proj_xy-brand-0", "proj_x", "proj_xy", Method.SPLIT, True),
        ("proj_x", "proj_x", "proj_x", Method.STATED, True),
        ("brand-0", None, None, Method.NONE, False),
        ("proj_x-brand-x", None, None, Method.NONE, False),
        ("proj_x-brand-", None, None, Method.NONE, False),
        ("-brand-0", None, None, Method.NONE, False),
        ("proj_x-brand-٣", None, None, Method.NONE, False),
        ("proj_x-brand-３", None, None, Method.NONE, False),
        ("proj_x-brand-²", None, None, Method.NONE, False),
        ("proj_x-brand-x", "proj_y", "proj_y", Method.STATED, True),
        (None, "proj_x", "proj_x", Method.STATED, False),
        # Named like the posts of a dry run, with which they would be mixed.
        (f"dryrun:{UUID}-brand-0", None, None, Method.NONE, False),
        (f"dryrun:{UUID}-brand-0", f"dryrun:{UUID}", None, Method.NONE, False),
        (None, f"dryrun:{UUID}", None, Method.NONE, False),
        (None, None, None, Method.NONE, False),
    ],
)
def test_project_of_a_job_id(
    job_id: str | None, stated: str | None, project: str | None, method: Method, disagrees: bool
) -> None:
    found = attribute(job_id, stated)
    assert (found.project_id, found.method, found.disagrees) == (project, method, disagrees)


def test_posts_of_two_dry_runs_are_apart_and_never_a_project() -> None:
    first, second = (attribute(UUID).scope(UUID), attribute(UUID).scope(UUID[::-1]))
    assert first == f"dryrun:{UUID}" != second
    assert attribute("proj_x-brand-0").scope("proj_x-brand-0") == "proj_x"


@pytest.mark.parametrize(
    "text", ["", UUID[:-1], UUID + "0", "g" + UUID[1:], UUID.replace("-", "_")]
)
def test_what_is_not_a_uuid(text: str) -> None:
    assert not is_uuid(text)
