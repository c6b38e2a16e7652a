"""A row for every table of posts, for migrations with data in them."""

ROWS = {
    "posts_events": (
        "(key, format, state, queue, attempts) values ('event:1', 'event', 'TAKEN', 'q', 1)"
    ),
    "posts_batches": (
        "(batch_key, event_key, format, state, scope, project_method, items_count)"
        " values ('b/p', 'event:1', 'event', 'DONE', 'proj_x', 'payload', 1)"
    ),
    "posts_batch_items": "(batch_id, position, status) values (1, 0, 'success')",
    "posts_analytics": (
        "(scope, platform, content_id, batch_id, version_at, fetch_status, day, analyzed_at,"
        " not_analysed, primary_intent, intent_confidence, processing_time_ms, model_version)"
        " select 'proj_x', 'tiktok', '1', 1, created_at, 'success', '2026-01-01', created_at,"
        " 'no_text', 'DISCUSSION', 0.5, 1.0, 'v1' from jobs limit 1"
    ),
    "posts_crawl_errors": (
        "(content_id, scope, job_id, platform, batch_key, error_code, error_category, retry_class,"
        " day) values ('2', 'proj_x', 'proj_x-brand-0', 'tiktok', 'b/p', 'TIMEOUT', 'network',"
        " 'soon', '2026-01-01')"
    ),
    "posts_days": (
        "(scope, day, platform, sentiment, intent, risk, posts, viral, impact_sum)"
        " values ('proj_x', '2026-01-01', 'tiktok', 'NEUTRAL', 'LEAD', 'LOW', 1, 0, 0.5)"
    ),
    "posts_error_days": (
        "(scope, day, platform, code, category, errors)"
        " values ('proj_x', '2026-01-01', 'tiktok', 'TIMEOUT', 'network', 1)"
    ),
    "posts_day_changes": (
        "(scope, day, platform, sentiment, intent, risk, posts, viral, impact_sum)"
        " values ('proj_x', '2026-01-01', 'tiktok', 'NEUTRAL', 'LEAD', 'LOW', 1, 0, 0.5)"
    ),
    "posts_error_day_changes": (
        "(scope, day, platform, code, category, errors)"
        " values ('proj_x', '2026-01-01', 'tiktok', 'TIMEOUT', 'network', 1)"
    ),
    "posts_differences": (
        "(scope, platform, content_id, field, batch_id)"
        " values ('proj_x', 'tiktok', '1', 'risk_level', 1)"
    ),
}
