"""Adds the indexes, built beside running processes if the database can do that.

Revision ID: posts_0002
"""

from alembic import op

revision = "posts_0002"
down_revision = "posts_0001"
branch_labels = None
depends_on = None

#: name -> table and columns
CONCURRENTLY = {
    "posts_analytics_by_job": "posts_analytics (job_id)",
    "posts_analytics_by_status": "posts_analytics (fetch_status)",
    "posts_analytics_by_task": "posts_analytics (task_type)",
    "posts_analytics_by_impact": "posts_analytics (scope, impact_score)",
    "posts_crawl_errors_by_project": "posts_crawl_errors (project_id)",
    "posts_crawl_errors_by_code": "posts_crawl_errors (error_code)",
    "posts_crawl_errors_by_time": "posts_crawl_errors (created_at)",
    "posts_crawl_errors_by_day": "posts_crawl_errors (scope, day)",
    "posts_batches_by_scope": "posts_batches (scope, id)",
    "posts_batches_by_job": "posts_batches (job_id)",
    "posts_batches_finished": "posts_batches (finished_at)",
    "posts_events_by_state": "posts_events (state, due_at)",
    "posts_events_by_batch": "posts_events (batch_key)",
}


def upgrade() -> None:
    # PostgreSQL builds them after this, outside the transaction, so that writers do not have to
    # wait.
    if op.get_context().dialect.name == "sqlite":
        for name, columns in CONCURRENTLY.items():
            op.execute(f"create index {name} on {columns}")


def downgrade() -> None:
    for name in CONCURRENTLY:
        op.execute(f"drop index if exists {name}")
