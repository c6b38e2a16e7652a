-- The queries of meetings.

-- name: meetings_municipality
select id, subdomain, name, state, country, kind, url, zone, pages, last_updated, latitude,
       longitude, popup_data, created_at, updated_at
from   meetings_municipalities
where  subdomain = :subdomain;

-- name: meetings_municipalities
-- Municipalities by subdomain, from a position; those whose name or subdomain contains `words`.
select   id, subdomain, name, state, country, kind, url, zone, pages, last_updated, latitude,
         longitude, popup_data, created_at, updated_at
from     meetings_municipalities
where    subdomain > :after
         and lower(name || ' ' || subdomain) like cast(:words as text) escape '\'
         and coalesce(state, '') = coalesce(cast(:state as text), state, '')
order by subdomain
limit    :limit;

-- name: meetings_municipality_states
-- All states and provinces, for a filter.
select   distinct state
from     meetings_municipalities
where    state is not null
order by state;

-- name: meetings_add_municipality
insert into meetings_municipalities (subdomain, name, state, country, kind, url, zone, pages, last_updated,
                            latitude, longitude, popup_data, created_at, updated_at)
values (:subdomain, :name, :state, :country, :kind, :url, :zone, :pages, :last_updated,
        :latitude, :longitude, :popup_data, @now, @now)
returning id;

-- name: meetings_change_municipality
update meetings_municipalities
set    name = :name, state = :state, country = :country, kind = :kind, url = :url, zone = :zone,
       pages = :pages, last_updated = :last_updated, latitude = :latitude,
       longitude = :longitude, popup_data = :popup_data, updated_at = @now
where  subdomain = :subdomain
returning id;

-- name: meetings_add_counts
-- The counts of one settlement. Reads add them up, so that workers do not share a row.
insert into meetings_counts (job_id, documents_created, documents_updated, documents_seen,
                            pages_created, pages_updated, pages_unchanged, pages_rejected)
values (:job_id, :documents_created, :documents_updated, :documents_seen, :pages_created,
        :pages_updated, :pages_unchanged, :pages_rejected)
returning id;

-- name: meetings_counts
select coalesce(cast(sum(documents_created) as bigint), 0) as documents_created,
       coalesce(cast(sum(documents_updated) as bigint), 0) as documents_updated,
       coalesce(cast(sum(documents_seen - documents_updated) as bigint), 0) as documents_unchanged,
       coalesce(cast(sum(pages_created) as bigint), 0) as pages_created,
       coalesce(cast(sum(pages_updated) as bigint), 0) as pages_updated,
       coalesce(cast(sum(pages_unchanged) as bigint), 0) as pages_unchanged,
       coalesce(cast(sum(pages_rejected) as bigint), 0) as pages_rejected
from   meetings_counts
where  job_id = :job_id;

-- name: meetings_drop_differences
-- An inventory starts again.
delete from meetings_differences
where  job_id = :job_id
returning kind;

-- name: meetings_known_ids
-- What is stored for a range of upstream ids: pages, vanished ones too, older versions, rejects.
select 'PAGE', upstream_id, id, case when vanished_at is null then 0 else 1 end, job_id
from   meetings_pages
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id > :after and upstream_id <= :upto
union all
select 'HISTORY', upstream_id, page_id, 0, job_id
from   meetings_page_history
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id > :after and upstream_id <= :upto
union all
select 'REJECT', upstream_id, null, 0, job_id
from   meetings_rejects
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id > :after and upstream_id <= :upto;

-- name: meetings_count_differences
select   kind, count(*)
from     meetings_differences
where    job_id = :job_id
group by kind;

-- name: meetings_gaps
-- Upstream ids to fetch: unknown ones, and older versions of pages whose current version
-- vanished.
select   d.upstream_id
from     meetings_differences d
where    d.job_id = :job_id
         and (d.kind = 'MISSING'
              or (d.kind = 'OLDER'
                  and exists (select 1 from meetings_differences v
                              where  v.job_id = :job_id and v.kind = 'VANISHED'
                                     and v.page_id = d.page_id)))
order by d.upstream_id
limit    :limit;

-- name: meetings_yield_pages
-- The next row for one of these pages replaces it.
update meetings_pages
set    job_id = 0
where  id in (@each(:ids, bigint))
returning id;

-- name: meetings_yield_vanished_pages
-- Pages that are no longer upstream are replaced by rows that are, even if a later job wrote them.
update meetings_pages
set    job_id = 0
where  id in (select d.page_id from meetings_differences d
              where  d.job_id = :job_id and d.kind = 'VANISHED')
returning id;

-- name: meetings_vanish_pages
-- Marks pages that are no longer upstream.
update meetings_pages
set    vanished_at = @now, updated_at = @now
where  vanished_at is null
       and id in (select d.page_id from meetings_differences d
                  where  d.job_id = :job_id and d.kind = 'VANISHED')
returning upstream_id;

-- name: meetings_mark_duplicates
-- Older versions that are upstream together with the current version of their page.
update meetings_page_history
set    state = 'DUPLICATE'
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id in (select d.upstream_id from meetings_differences d
                           where  d.job_id = :job_id and d.kind = 'OLDER')
returning upstream_id;

-- name: meetings_mark_superseded
-- Duplicates that are no longer upstream.
update meetings_page_history
set    state = 'SUPERSEDED'
where  municipality_id = :municipality_id and document_type = :document_type
       and state = 'DUPLICATE'
       and upstream_id not in (select d.upstream_id from meetings_differences d
                               where  d.job_id = :job_id and d.kind = 'OLDER')
returning upstream_id;

-- name: meetings_count_rows
-- The rows of the source that are accounted for: pages, duplicates of them, rejects.
select (select count(*) from meetings_pages
        where  municipality_id = :municipality_id and document_type = :document_type
               and vanished_at is null),
       (select count(*) from meetings_page_history
        where  municipality_id = :municipality_id and document_type = :document_type
               and state = 'DUPLICATE'),
       (select count(*) from meetings_rejects
        where  municipality_id = :municipality_id and document_type = :document_type);

-- name: meetings_other_rows
-- Rows of these municipalities' sites that are not pages: rejects, and duplicates of pages.
select   municipality_id, 'REJECTED', count(*)
from     meetings_rejects
where    municipality_id in (@each(:ids, bigint))
group by municipality_id
union all
select   municipality_id, 'DUPLICATE', count(*)
from     meetings_page_history
where    municipality_id in (@each(:ids, bigint)) and state = 'DUPLICATE'
group by municipality_id;

-- name: meetings_pages_of
-- Every page that has not vanished, document by document, from a position.
select   d.document_type, d.date, d.meeting, p.number, p.text, p.page_image, p.upstream_id,
         p.extra, p.updated_at, d.id, p.id
from     meetings_documents d
         join meetings_pages p on p.document_id = d.id
where    d.municipality_id = :municipality_id and p.vanished_at is null
         and (d.date, d.id, p.number) > (:date, :document_id, :number)
order by d.date, d.id, p.number
limit    :limit;

-- name: meetings_documents_of
-- The documents of a municipality, newest first, from a position.
select   d.id, d.document_type, d.meeting, d.date,
         (select count(*) from meetings_pages p
          where  p.document_id = d.id and p.vanished_at is null),
         (select count(*) from meetings_pages p
          where  p.document_id = d.id and p.vanished_at is not null)
from     meetings_documents d
where    d.municipality_id = :municipality_id
         and (d.date, d.id) < (:date, :document_id)
         and d.date >= :since and d.date <= :until
         and d.meeting = coalesce(cast(:meeting as text), d.meeting)
         and d.document_type = coalesce(cast(:document_type as text), d.document_type)
order by d.date desc, d.id desc
limit    :limit;

-- name: meetings_document
select d.id, m.subdomain, m.name, d.document_type, d.meeting, d.date
from   meetings_documents d
       join meetings_municipalities m on m.id = d.municipality_id
where  d.id = :document_id;

-- name: meetings_pages_of_document
-- Its pages from a number, vanished ones too; the beginning of long texts.
select   p.id, p.number, substr(p.text, 1, :characters), p.page_image, p.upstream_id,
         p.updated_at, p.vanished_at, length(p.text),
         (select count(*) from meetings_page_history h where h.page_id = p.id)
from     meetings_pages p
where    p.document_id = :document_id and p.number > :after
order by p.number
limit    :limit;

-- name: meetings_page
-- One page, with the ids of its neighbours in the document.
select p.id, p.number, p.text, p.page_image, p.upstream_id, p.updated_at, p.vanished_at,
       p.document_id,
       (select b.id from meetings_pages b
        where  b.document_id = p.document_id and b.number < p.number
        order by b.number desc limit 1),
       (select a.id from meetings_pages a
        where  a.document_id = p.document_id and a.number > p.number
        order by a.number limit 1)
from   meetings_pages p
where  p.id = :page_id;

-- name: meetings_bodies
-- The bodies that meet, for a filter.
select   meeting, count(*)
from     meetings_documents
where    municipality_id = :municipality_id
group by meeting
order by meeting;

-- name: meetings_page_versions
-- Earlier contents of a page, the latest first.
select   upstream_id, state, text, page_image, at
from     meetings_page_history
where    page_id = :page_id
order by at desc, upstream_id
limit    :limit;

-- Written in batches while rows are settled.

-- name: meetings_hold_collection
-- Locks the collection: one worker at a time writes its pages, so that what it read is still true.
-- SQLite has one writer at a time anyway.
select cast(:collection as text);

-- name: meetings_find_documents
-- Documents, with the latest jobs that saw and changed each.
select d.meeting, d.date, d.id, coalesce(d.seen_job_id, 0), coalesce(d.changed_job_id, 0),
       d.created_at
from   @rows(municipality_id bigint, document_type text, meeting text, date text) k
       join meetings_documents d
            on d.municipality_id = k.municipality_id and d.document_type = k.document_type
            and d.meeting = k.meeting and d.date = k.date;

-- name: meetings_add_documents
insert into meetings_documents (municipality_id, document_type, meeting, date, seen_job_id,
                                changed_job_id)
select k.municipality_id, k.document_type, k.meeting, k.date, k.job_id, k.job_id
from   @rows(municipality_id bigint, document_type text, meeting text, date text, job_id bigint) k
where  true
on conflict (municipality_id, document_type, meeting, date) do nothing
returning meeting, date, id, seen_job_id, changed_job_id, created_at;

-- name: meetings_document_created
select created_at
from   meetings_documents
where  id = :id;

-- name: meetings_see_documents
-- Returns those that the job had not seen before.
update meetings_documents
set    seen_job_id = k.job_id
from   @rows(id bigint, job_id bigint) k
where  meetings_documents.id = k.id and coalesce(meetings_documents.seen_job_id, 0) < k.job_id
returning meetings_documents.id;

-- name: meetings_note_changed_documents
-- Returns those that the job had neither created nor changed before.
update meetings_documents
set    changed_job_id = k.job_id
from   @rows(id bigint, job_id bigint) k
where  meetings_documents.id = k.id and coalesce(meetings_documents.changed_job_id, 0) < k.job_id
returning meetings_documents.id;

-- name: meetings_find_pages
select p.id, p.document_id, p.number, p.upstream_id, p.content_hash, p.job_id,
       case when p.vanished_at is null then 0 else 1 end
from   @rows(document_id bigint, number bigint) k
       join meetings_pages p on p.document_id = k.document_id and p.number = k.number;

-- name: meetings_change_pages
update meetings_pages
set    upstream_id = n.upstream_id, content_hash = n.content_hash, text = n.text,
       page_image = n.page_image, extra = n.extra, job_id = n.job_id, vanished_at = null,
       updated_at = @now
from   @rows(upstream_id text, content_hash text, text text, page_image text, extra json,
             job_id bigint, id bigint) n
where  meetings_pages.id = n.id
returning meetings_pages.id;

-- name: meetings_find_versions
select h.upstream_id, h.page_id, h.state
from   @rows(municipality_id bigint, document_type text, upstream_id text) k
       join meetings_page_history h
            on h.municipality_id = k.municipality_id and h.document_type = k.document_type
            and h.upstream_id = k.upstream_id;

-- name: meetings_keep_versions
-- The current page becomes history, under its current upstream id.
insert into meetings_page_history (municipality_id, document_type, upstream_id, page_id, state,
                                   content_hash, text, page_image, extra, job_id)
select p.municipality_id, p.document_type, p.upstream_id, p.id, k.state, p.content_hash, p.text,
       p.page_image, p.extra, p.job_id
from   @rows(state text, page_id bigint) k
       join meetings_pages p on p.id = k.page_id
where  true
on conflict (municipality_id, document_type, upstream_id) do update
set page_id = excluded.page_id, state = excluded.state, content_hash = excluded.content_hash,
    text = excluded.text, page_image = excluded.page_image, extra = excluded.extra,
    job_id = excluded.job_id, at = excluded.at
returning page_id;

-- name: meetings_add_versions
-- A row that lost against another row for the same page.
insert into meetings_page_history (municipality_id, document_type, upstream_id, page_id, state,
                                   content_hash, text, page_image, extra, job_id)
select k.municipality_id, k.document_type, k.upstream_id, k.page_id, k.state, k.content_hash,
       k.text, k.page_image, k.extra, k.job_id
from   @rows(municipality_id bigint, document_type text, upstream_id text, page_id bigint,
             state text, content_hash text, text text, page_image text, extra json,
             job_id bigint) k
where  true
on conflict (municipality_id, document_type, upstream_id) do nothing
returning page_id;

-- name: meetings_add_rejects
insert into meetings_rejects (municipality_id, document_type, upstream_id, job_id, seq)
select k.municipality_id, k.document_type, k.upstream_id, k.job_id, k.seq
from   @rows(municipality_id bigint, document_type text, upstream_id text, job_id bigint,
             seq bigint) k
where  true
on conflict (municipality_id, document_type, upstream_id) do update
set job_id = excluded.job_id, seq = excluded.seq, at = excluded.at
returning upstream_id;

-- name: meetings_add_differences
insert into meetings_differences (job_id, kind, upstream_id, page_id)
select k.job_id, k.kind, k.upstream_id, k.page_id
from   @rows(job_id bigint, kind text, upstream_id text, page_id bigint) k
where  true
on conflict (job_id, kind, upstream_id) do nothing
returning upstream_id;

-- name: meetings_drop_rejects
-- Rejected rows that are no longer upstream.
delete from meetings_rejects
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id in (@each(:ids, text))
returning upstream_id;

-- name: meetings_forget_versions
-- Older versions that are on the site again are treated as if they were new.
delete from meetings_page_history
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id in (@each(:ids, text))
returning page_id;

-- The words of pages, see holdfast/text_search.py.

-- name: meetings_search_enqueue
insert into meetings_search_queue (batch)
values (:batch)
returning id;

-- name: meetings_search_next
select   id, batch
from     meetings_search_queue
order by id
limit    1
@skip_locked;

-- name: meetings_search_dequeue
delete from meetings_search_queue
where  id = :id
returning id;

-- name: meetings_search_ids
select id
from   meetings_pages
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id in (@each(:upstream_ids, text));

-- name: meetings_search_remove
delete from meetings_search
where  rowid in (@each(:ids, bigint));

-- name: meetings_search_add
insert into meetings_search (rowid, words)
select id, @words(text)
from   meetings_pages
where  id in (@each(:ids, bigint)) and vanished_at is null
@replaced_words;

-- name: meetings_search
-- Pages with these words, newest first, from a position. Snippets are expensive, so they are made
-- for these only.
with matches as materialized (
    select   p.id as page_id
    from     meetings_search
             join meetings_pages p on p.id = meetings_search.rowid
             join meetings_documents d on d.id = p.document_id
             join meetings_municipalities m on m.id = d.municipality_id
    where    @has_words(meetings_search, :words)
             and m.subdomain = coalesce(cast(:subdomain as text), m.subdomain)
             and (d.date, p.id) < (:date, :page_id)
    order by d.date desc, p.id desc
    limit    :limit
)
select   p.id, d.id, m.subdomain, m.name, d.document_type, d.meeting, d.date, p.number,
         p.vanished_at, @snippet(meetings_search, p.text, :words)
from     matches
         cross join meetings_search
         join meetings_pages p on p.id = meetings_search.rowid
         join meetings_documents d on d.id = p.document_id
         join meetings_municipalities m on m.id = d.municipality_id
where    meetings_search.rowid = matches.page_id and @has_words(meetings_search, :words)
order by d.date desc, p.id desc;

-- name: meetings_highlight
select @highlight(meetings_search, p.text, :words)
from   meetings_search
       join meetings_pages p on p.id = meetings_search.rowid
where  @has_words(meetings_search, :words) and meetings_search.rowid = :page_id;

-- name: meetings_delete_job_counts
-- What belongs to one job alone goes with it. Pages and their history belong to the municipality:
-- other jobs have read and changed them too.
delete from meetings_counts
where  job_id = :job_id and :limit > 0
returning job_id;

-- name: meetings_delete_job_differences
delete from meetings_differences
where  job_id = :job_id
       and (kind, upstream_id) in (select kind, upstream_id from meetings_differences
                                   where job_id = :job_id limit :limit)
returning job_id;

-- name: meetings_delete_job_rejects
delete from meetings_rejects
where  job_id = :job_id and :limit > 0
returning job_id;
