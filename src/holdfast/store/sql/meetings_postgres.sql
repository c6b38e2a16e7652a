-- The meetings pipeline's batches, as PostgreSQL takes them: arrays, one for each column.

-- name: hold_meeting_collection
-- One worker at a time writes pages of a collection: what it found is still so when it writes.
select pg_advisory_xact_lock(hashtextextended(:collection, 0));

-- name: find_meeting_documents
select d.id, d.meeting, d.date
from   unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) k (municipality, type, meeting, date)
       join meeting_documents d
            on d.municipality_id = k.municipality and d.document_type = k.type
            and d.meeting = k.meeting and d.date = k.date;

-- name: add_meeting_documents
insert into meeting_documents (municipality_id, document_type, meeting, date)
select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[])
on conflict (municipality_id, document_type, meeting, date) do nothing
returning id, meeting, date;

-- name: find_meeting_pages
select p.id, p.document_id, p.number, p.upstream_id, p.content_hash, p.job_id,
       case when p.vanished_at is null then 0 else 1 end
from   unnest($1::bigint[], $2::bigint[]) k (document_id, number)
       join meeting_pages p on p.document_id = k.document_id and p.number = k.number;

-- name: change_meeting_pages
update meeting_pages
set    upstream_id = n.upstream_id, content_hash = n.content_hash, text = n.text,
       page_image = n.page_image, extra = n.extra, job_id = n.job_id, vanished_at = null,
       updated_at = clock_timestamp()
from   unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::json[], $6::bigint[],
              $7::bigint[])
       n (upstream_id, content_hash, text, page_image, extra, job_id, id)
where  meeting_pages.id = n.id
returning meeting_pages.id;

-- name: find_meeting_versions
select h.upstream_id, h.page_id, h.state
from   unnest($1::bigint[], $2::text[], $3::text[]) k (municipality, type, upstream_id)
       join meeting_page_history h
            on h.municipality_id = k.municipality and h.document_type = k.type
            and h.upstream_id = k.upstream_id;

-- name: keep_meeting_versions
-- The page as it is now becomes history, under its present upstream id.
insert into meeting_page_history (municipality_id, document_type, upstream_id, page_id, state,
                                  content_hash, text, page_image, extra, job_id)
select p.municipality_id, p.document_type, p.upstream_id, p.id, k.state, p.content_hash, p.text,
       p.page_image, p.extra, p.job_id
from   unnest($1::text[], $2::bigint[]) k (state, page_id)
       join meeting_pages p on p.id = k.page_id
on conflict (municipality_id, document_type, upstream_id) do update
set page_id = excluded.page_id, state = excluded.state, content_hash = excluded.content_hash,
    text = excluded.text, page_image = excluded.page_image, extra = excluded.extra,
    job_id = excluded.job_id, at = excluded.at
returning page_id;

-- name: add_meeting_versions
-- A row that gives way to another one for the same page.
insert into meeting_page_history (municipality_id, document_type, upstream_id, page_id, state,
                                  content_hash, text, page_image, extra, job_id)
select * from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[],
                     $7::text[], $8::text[], $9::json[], $10::bigint[])
on conflict (municipality_id, document_type, upstream_id) do nothing
returning page_id;

-- name: add_meeting_rejects
insert into meeting_rejects (municipality_id, document_type, upstream_id, job_id, seq)
select * from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
on conflict (municipality_id, document_type, upstream_id) do update
set job_id = excluded.job_id, seq = excluded.seq, at = excluded.at
returning upstream_id;

-- name: add_meeting_differences
insert into meeting_differences (job_id, kind, upstream_id, page_id)
select * from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[])
on conflict (job_id, kind, upstream_id) do nothing
returning upstream_id;

-- name: unindex_meeting_pages
delete from meeting_search
where  page_id in (@each(:ids, bigint))
returning page_id;

-- name: index_meeting_pages
-- A word vector has at most 1,048,575 bytes, and one character makes up to eight of them (rare
-- letters, hyphenated); beyond that, all indexing would fail. A page's first words find it too.
insert into meeting_search (page_id, words)
select id, to_tsvector('english', left(text, 100000))
from   meeting_pages
where  id in (@each(:ids, bigint)) and vanished_at is null
on conflict (page_id) do update
set words = excluded.words
returning page_id;

-- name: search_meetings
-- Pages with these words, newest first, from a position on. Characters 2 and 3 stand around what
-- was found: no text that people read has them.
select   p.id, d.id, m.subdomain, m.name, d.document_type, d.meeting, d.date, p.number,
         p.vanished_at,
         ts_headline('english', left(p.text, 20000), q.query,
                     'StartSel=' || chr(2) || ', StopSel=' || chr(3)
                     || ', MaxWords=30, MinWords=10, MaxFragments=2')
from     (select websearch_to_tsquery('english', :words) as query) q
         join meeting_search s on s.words @@ q.query
         join meeting_pages p on p.id = s.page_id
         join meeting_documents d on d.id = p.document_id
         join municipalities m on m.id = d.municipality_id
where    m.subdomain = coalesce(cast(:subdomain as text), m.subdomain)
         and (d.date, p.id) < (:date, :page_id)
order by d.date desc, p.id desc
limit    :limit;

-- name: meeting_words_found
-- A page's text with what was found in it between characters 2 and 3.
select ts_headline('english', left(p.text, 300000), websearch_to_tsquery('english', :words),
                   'HighlightAll=true, StartSel=' || chr(2) || ', StopSel=' || chr(3))
from   meeting_pages p
where  p.id = :page_id;

-- Ids are looked up one by one (`offset 0` keeps the planner to that): a table that was filled just
-- now has no statistics, and without them each row is compared with each id.

-- name: meeting_pages_by_upstream
select found.id
from   unnest(cast(:ids as text[])) k (upstream_id)
       cross join lateral (
           select id
           from   meeting_pages
           where  municipality_id = :municipality_id and document_type = :document_type
                  and upstream_id = k.upstream_id
           offset 0
       ) found;

-- name: drop_meeting_rejects
-- Rejected rows that are upstream no more.
delete from meeting_rejects
where  ctid = any (array(
           select found.ctid
           from   unnest(cast(:ids as text[])) k (upstream_id)
                  cross join lateral (
                      select ctid
                      from   meeting_rejects
                      where  municipality_id = :municipality_id and document_type = :document_type
                             and upstream_id = k.upstream_id
                      offset 0
                  ) found))
returning upstream_id;

-- name: forget_meeting_versions
-- Older versions that are upstream again: they come in as if they had not been seen.
delete from meeting_page_history
where  ctid = any (array(
           select found.ctid
           from   unnest(cast(:ids as text[])) k (upstream_id)
                  cross join lateral (
                      select ctid
                      from   meeting_page_history
                      where  municipality_id = :municipality_id and document_type = :document_type
                             and upstream_id = k.upstream_id
                      offset 0
                  ) found))
returning page_id;
