"""A row for every table of linker, for migrations with data in them."""

ROWS = {
    "linker_projects": (
        "(owner_id, name, provider, language, candidates, auto_accept, lead, created_at)"
        " select 'ann', 'people', 'wikidata', 'en', 10, 95, 10, created_at from jobs limit 1"
    ),
    "linker_readers": "(project_id, user_name) values (1, 'ben')",
    "linker_datasets": (
        "(project_id, name, file_id, mapping, created_at)"
        " select 1, 'a.csv', 1, '{}', created_at from jobs limit 1"
    ),
    "linker_tasks": (
        "(job_id, seq, project_id, key, name, folded, state, entry, reason)"
        " values (1, 1, 1, 'a', 'A', 'a', 'awaiting_review', '{}', '')"
    ),
    "linker_candidates": (
        "(job_id, seq, item, project_id, position, label, description, score, fields, matched,"
        " source, status) values (1, 1, 'Q1', 1, 1, 'A', '', 50, '[]', '[]', 'automated_search',"
        " 'suggested')"
    ),
    "linker_entities": (
        "(space, id, label, description, data, seen_at)"
        " select 'wikidata', 'Q1', 'A', '', '{}', created_at from jobs limit 1"
    ),
    "linker_entity_names": "(space, folded, id) values ('wikidata', 'a', 'Q1')",
    "linker_calls": "(job_id, entries, calls) values (1, 1, 2)",
    "linker_tokens": (
        "(project_id, hash, shown, created_by, created_at)"
        " select 1, 'h', 'hfr_1', 'ann', created_at from jobs limit 1"
    ),
}
