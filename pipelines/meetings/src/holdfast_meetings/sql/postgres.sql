-- The queries of meetings that differ on PostgreSQL.

-- name: meetings_hold_collection
select pg_advisory_xact_lock(hashtextextended(:collection, 0));

-- Ids are looked up one by one (`offset 0` forces the planner to): a table that was just filled has
-- no statistics, and without them the planner compares each row with each id.

-- name: meetings_search_ids
select found.id
from   unnest(cast(:upstream_ids as text[])) k (upstream_id)
       cross join lateral (
           select id
           from   meetings_pages
           where  municipality_id = :municipality_id and document_type = :document_type
                  and upstream_id = k.upstream_id
           offset 0
       ) found;

-- name: meetings_drop_rejects
delete from meetings_rejects
where  ctid = any (array(
           select found.ctid
           from   unnest(cast(:ids as text[])) k (upstream_id)
                  cross join lateral (
                      select ctid
                      from   meetings_rejects
                      where  municipality_id = :municipality_id and document_type = :document_type
                             and upstream_id = k.upstream_id
                      offset 0
                  ) found))
returning upstream_id;

-- name: meetings_forget_versions
delete from meetings_page_history
where  ctid = any (array(
           select found.ctid
           from   unnest(cast(:ids as text[])) k (upstream_id)
                  cross join lateral (
                      select ctid
                      from   meetings_page_history
                      where  municipality_id = :municipality_id and document_type = :document_type
                             and upstream_id = k.upstream_id
                      offset 0
                  ) found))
returning page_id;
