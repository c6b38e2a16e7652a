-- The meetings pipeline's queries that read the same on both databases.

-- name: municipality
select id, subdomain, name, state, country, kind, url, zone, pages, last_updated, latitude,
       longitude, popup_data, created_at, updated_at
from   municipalities
where  subdomain = :subdomain;

-- name: municipalities
-- By subdomain, from a position on; those whose name or subdomain has `words` in it.
select   id, subdomain, name, state, country, kind, url, zone, pages, last_updated, latitude,
         longitude, popup_data, created_at, updated_at
from     municipalities
where    subdomain > :after
         and lower(name || ' ' || subdomain) like cast(:words as text) escape '\'
         and coalesce(state, '') = coalesce(cast(:state as text), state, '')
order by subdomain
limit    :limit;

-- name: municipality_states
-- The states and provinces that there are, for a filter.
select   distinct state
from     municipalities
where    state is not null
order by state;

-- name: add_municipality
insert into municipalities (subdomain, name, state, country, kind, url, zone, pages, last_updated,
                            latitude, longitude, popup_data, created_at, updated_at)
values (:subdomain, :name, :state, :country, :kind, :url, :zone, :pages, :last_updated,
        :latitude, :longitude, :popup_data, @now, @now)
returning id;

-- name: change_municipality
update municipalities
set    name = :name, state = :state, country = :country, kind = :kind, url = :url, zone = :zone,
       pages = :pages, last_updated = :last_updated, latitude = :latitude,
       longitude = :longitude, popup_data = :popup_data, updated_at = @now
where  subdomain = :subdomain
returning id;

-- name: add_meeting_counts
-- What one settlement did; reading sums over them, so that no two workers share a row.
insert into meeting_counts (job_id, documents_created, pages_created, pages_updated,
                            pages_unchanged, pages_rejected)
values (:job_id, :documents_created, :pages_created, :pages_updated, :pages_unchanged,
        :pages_rejected)
returning id;

-- name: meeting_counts
select coalesce(cast(sum(documents_created) as bigint), 0),
       coalesce(cast(sum(pages_created) as bigint), 0),
       coalesce(cast(sum(pages_updated) as bigint), 0),
       coalesce(cast(sum(pages_unchanged) as bigint), 0),
       coalesce(cast(sum(pages_rejected) as bigint), 0)
from   meeting_counts
where  job_id = :job_id;

-- name: add_meeting_unindexed
-- Pages whose words are not in the index as they are now.
insert into meeting_unindexed (municipality_id, document_type, upstream_ids)
values (:municipality_id, :document_type, :upstream_ids)
returning id;

-- name: next_meeting_unindexed
select   id, municipality_id, document_type, upstream_ids
from     meeting_unindexed
order by id
limit    1
@skip_locked;

-- name: drop_meeting_unindexed
delete from meeting_unindexed
where  id = :id
returning id;

-- name: drop_meeting_differences
-- An inventory begins anew.
delete from meeting_differences
where  job_id = :job_id
returning kind;

-- name: known_meeting_ids
-- What is kept of a stretch of upstream ids: pages, vanished ones too, older versions, rejects.
select 'PAGE', upstream_id, id, case when vanished_at is null then 0 else 1 end, job_id
from   meeting_pages
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id > :after and upstream_id <= :upto
union all
select 'HISTORY', upstream_id, page_id, 0, job_id
from   meeting_page_history
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id > :after and upstream_id <= :upto
union all
select 'REJECT', upstream_id, null, 0, job_id
from   meeting_rejects
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id > :after and upstream_id <= :upto;

-- name: count_meeting_differences
select   kind, count(*)
from     meeting_differences
where    job_id = :job_id
group by kind;

-- name: meeting_gaps
-- Upstream ids to be fetched: those not known, and older versions whose page's current one
-- vanished.
select   d.upstream_id
from     meeting_differences d
where    d.job_id = :job_id
         and (d.kind = 'MISSING'
              or (d.kind = 'OLDER'
                  and exists (select 1 from meeting_differences v
                              where  v.job_id = :job_id and v.kind = 'VANISHED'
                                     and v.page_id = d.page_id)))
order by d.upstream_id
limit    :limit;

-- name: yield_meeting_pages
-- These give way to whatever row comes for them next.
update meeting_pages
set    job_id = 0
where  id in (@each(:ids, bigint))
returning id;

-- name: yield_vanished_meeting_pages
-- What is upstream no more gives way to what is, also where a later job than this one wrote it.
update meeting_pages
set    job_id = 0
where  id in (select d.page_id from meeting_differences d
              where  d.job_id = :job_id and d.kind = 'VANISHED')
returning id;

-- name: vanish_meeting_pages
-- Tombstones for what is upstream no more.
update meeting_pages
set    vanished_at = @now, updated_at = @now
where  vanished_at is null
       and id in (select d.page_id from meeting_differences d
                  where  d.job_id = :job_id and d.kind = 'VANISHED')
returning upstream_id;

-- name: mark_meeting_duplicates
-- Older versions that are upstream beside their page's current one.
update meeting_page_history
set    state = 'DUPLICATE'
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id in (select d.upstream_id from meeting_differences d
                           where  d.job_id = :job_id and d.kind = 'OLDER')
returning upstream_id;

-- name: mark_meeting_superseded
-- Duplicates that are upstream no more.
update meeting_page_history
set    state = 'SUPERSEDED'
where  municipality_id = :municipality_id and document_type = :document_type
       and state = 'DUPLICATE'
       and upstream_id not in (select d.upstream_id from meeting_differences d
                               where  d.job_id = :job_id and d.kind = 'OLDER')
returning upstream_id;

-- name: count_meeting_rows
-- The rows of the source that are accounted for: pages, duplicates of them, rejects.
select (select count(*) from meeting_pages
        where  municipality_id = :municipality_id and document_type = :document_type
               and vanished_at is null),
       (select count(*) from meeting_page_history
        where  municipality_id = :municipality_id and document_type = :document_type
               and state = 'DUPLICATE'),
       (select count(*) from meeting_rejects
        where  municipality_id = :municipality_id and document_type = :document_type);

-- name: meeting_rows_aside
-- The rows of these municipalities' sources that are no pages: rejects, and duplicates of pages.
select   municipality_id, 'REJECTED', count(*)
from     meeting_rejects
where    municipality_id in (@each(:ids, bigint))
group by municipality_id
union all
select   municipality_id, 'DUPLICATE', count(*)
from     meeting_page_history
where    municipality_id in (@each(:ids, bigint)) and state = 'DUPLICATE'
group by municipality_id;

-- name: meeting_pages_of
-- Every page that is shown, document by document, from a position on.
select   d.document_type, d.date, d.meeting, p.number, p.text, p.page_image, p.upstream_id,
         p.extra, p.updated_at, d.id, p.id
from     meeting_documents d
         join meeting_pages p on p.document_id = d.id
where    d.municipality_id = :municipality_id and p.vanished_at is null
         and (d.date, d.id, p.number) > (:date, :document_id, :number)
order by d.date, d.id, p.number
limit    :limit;

-- name: meeting_documents_of
-- A municipality's documents, newest first, from a position on.
select   d.id, d.document_type, d.meeting, d.date,
         (select count(*) from meeting_pages p
          where  p.document_id = d.id and p.vanished_at is null),
         (select count(*) from meeting_pages p
          where  p.document_id = d.id and p.vanished_at is not null)
from     meeting_documents d
where    d.municipality_id = :municipality_id
         and (d.date, d.id) < (:date, :document_id)
         and d.date >= :since and d.date <= :until
         and d.meeting = coalesce(cast(:meeting as text), d.meeting)
         and d.document_type = coalesce(cast(:document_type as text), d.document_type)
order by d.date desc, d.id desc
limit    :limit;

-- name: meeting_document
select d.id, m.subdomain, m.name, d.document_type, d.meeting, d.date
from   meeting_documents d
       join municipalities m on m.id = d.municipality_id
where  d.id = :document_id;

-- name: meeting_pages_of_document
-- Its pages, from a number on, those that vanished too; of a long text the beginning.
select   p.id, p.number, substr(p.text, 1, :characters), p.page_image, p.upstream_id,
         p.updated_at, p.vanished_at, length(p.text),
         (select count(*) from meeting_page_history h where h.page_id = p.id)
from     meeting_pages p
where    p.document_id = :document_id and p.number > :after
order by p.number
limit    :limit;

-- name: meeting_page
-- One page, with the ids of its neighbours in the document.
select p.id, p.number, p.text, p.page_image, p.upstream_id, p.updated_at, p.vanished_at,
       p.document_id,
       (select b.id from meeting_pages b
        where  b.document_id = p.document_id and b.number < p.number
        order by b.number desc limit 1),
       (select a.id from meeting_pages a
        where  a.document_id = p.document_id and a.number > p.number
        order by a.number limit 1)
from   meeting_pages p
where  p.id = :page_id;

-- name: meeting_bodies
-- The bodies that met, for a filter.
select   meeting, count(*)
from     meeting_documents
where    municipality_id = :municipality_id
group by meeting
order by meeting;

-- name: meeting_page_versions
-- What stood on a page before, the latest first.
select   upstream_id, state, text, page_image, at
from     meeting_page_history
where    page_id = :page_id
order by at desc, upstream_id
limit    :limit;

-- name: meeting_slices
-- The latest slices of a stream.
select   id, generation, job_id, worker, started_at, ended_at, pages_count, ended, error
from     stream_slices
where    stream_id = :stream_id
order by id desc
limit    :limit;

-- name: meeting_streams
-- The streams of the pipeline, for their page; of one owner's jobs, or all.
select   s.id, s.source, s.mode, s.state, s.generation, s.job_id, j.state, s.pages_count,
         s.records_count, s.expected_count, s.actual_count, s.full_completed_at, s.verified_at,
         s.force_full, s.rerun_requested, s.error, s.cursor, s.updated_at, j.owner_id
from     streams s
         join jobs j on j.id = s.job_id
where    s.pipeline = 'meetings' and s.id > :after
         and s.mode = coalesce(cast(:mode as text), s.mode)
         and s.source like '%:' || coalesce(cast(:document_type as text), '%')
         and j.state = coalesce(cast(:job_state as text), j.state)
         and j.owner_id = coalesce(cast(:owner as text), j.owner_id)
order by s.id
limit    :limit;

-- name: meeting_streams_of
-- The streams of these sources, whosever their jobs are.
select   s.id, s.source, s.mode, s.state, s.generation, s.job_id, j.state, s.pages_count,
         s.records_count, s.expected_count, s.actual_count, s.full_completed_at, s.verified_at,
         s.force_full, s.rerun_requested, s.error, s.cursor, s.updated_at, j.owner_id
from     streams s
         join jobs j on j.id = s.job_id
where    s.pipeline = 'meetings' and s.source in (@each(:sources, text))
order by s.id;
