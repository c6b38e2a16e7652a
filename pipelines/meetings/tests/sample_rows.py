"""A row for every table of meetings, for migrations with data in them."""

ROWS = {
    "meetings_municipalities": (
        "(subdomain, name, url, zone, created_at, updated_at)"
        " select 'a.ca', 'A', 'https://a.example', 'UTC', created_at, created_at from jobs limit 1"
    ),
    "meetings_documents": (
        "(municipality_id, document_type, meeting, date)"
        " values (1, 'minutes', 'Council', '2026-01-01')"
    ),
    "meetings_pages": (
        "(document_id, municipality_id, document_type, number, upstream_id, content_hash, text,"
        " job_id) values (1, 1, 'minutes', 1, 'a', 'h', 'words', 1)"
    ),
    "meetings_page_history": (
        "(municipality_id, document_type, upstream_id, page_id, state, content_hash, text, job_id)"
        " values (1, 'minutes', 'b', 1, 'SUPERSEDED', 'h', 'words', 1)"
    ),
    "meetings_rejects": (
        "(municipality_id, document_type, upstream_id, job_id, seq)"
        " values (1, 'minutes', 'c', 1, 1)"
    ),
    "meetings_counts": (
        "(job_id, documents_created, pages_created, pages_updated, pages_unchanged, pages_rejected)"
        " values (1, 1, 1, 0, 0, 1)"
    ),
    "meetings_differences": "(job_id, kind, upstream_id) values (1, 'MISSING', 'd')",
    "meetings_search_queue": "(batch) values ('{}')",
    "meetings_search": "(rowid, words) values (1, 'words')",
}
