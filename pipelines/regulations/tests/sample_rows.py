"""A row for every table of regulations, for migrations with data in them."""

ROWS = {
    "regulations_documents": (
        "(key, source, canonical, url, title, found_by, captures_count, versions_count,"
        " first_seen_at, job_id, seq) select 'k', 'a', 'c', 'u', 't', 'BACKFILL', 1, 1, created_at,"
        " id, 1 from jobs limit 1"
    ),
    "regulations_bodies": (
        "(sha256, size, packed_size, place, stored_at)"
        " select 'h', 1, 1, 'files', created_at from jobs limit 1"
    ),
    "regulations_texts": "(sha256, text) values ('h', 'words')",
    "regulations_evidence": (
        "(key, url, sha256, content_class, content_type, title, size, fetched_at, last_verified_at)"
        " select 'k', 'u', 'h', 'HTML', 'text/html', 't', 1, created_at, created_at"
        " from jobs limit 1"
    ),
    "regulations_captures": (
        "(key, evidence_id, url, final_url, sha256, captured_at, status, headers, reason, found_by,"
        " job_id, seq) select 'k', 1, 'u', 'u', 'h', created_at, 200, '[]', 'NEW', 'BACKFILL',"
        " id, 1 from jobs limit 1"
    ),
    "regulations_sitemaps": (
        "(source, url, definition, read_at, job_id)"
        " select 'a', 'u', 'd', created_at, id from jobs limit 1"
    ),
    "regulations_indexes": "(job_id, source, url, children) values (1, 'a', 'u', '[]')",
    "regulations_forms": "(key, url) values ('k', 'u')",
    "regulations_run_counts": "(job_id, source, reason, count) values (1, 'a', 'dates.UNDATED', 1)",
    "regulations_search_queue": "(batch) values ('{}')",
    "regulations_search": "(rowid, words) values (1, 'words')",
}
