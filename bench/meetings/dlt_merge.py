"""`python -m bench.meetings.dlt_merge URL DSN FOLDER`: dlt, merging by key into PostgreSQL."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import dlt

from bench.meetings.download import pages


def main(url: str, dsn: str, folder: str) -> int:
    @dlt.resource(name="pages", write_disposition="merge", primary_key="id")
    def rows() -> Iterator[list[dict[str, Any]]]:
        yield from pages(url)

    pipeline = dlt.pipeline(
        pipeline_name="meetings",
        pipelines_dir=folder,
        # The server trusts everybody, but dlt does not go on without a password.
        destination=dlt.destinations.postgres(dsn.replace("@", ":none@", 1)),
        dataset_name="meetings",
    )
    pipeline.run(rows())
    with pipeline.sql_client() as client:
        found = client.execute_sql("select count(*) from pages")
    return int(found[0][0]) if found else 0


if __name__ == "__main__":
    print(main(*sys.argv[1:4]))
