-- The queries of regulations.

-- name: regulations_known
-- Documents and their latest evidence.
select d.key, d.canonical, d.url, d.title, d.published, d.eli, d.content_class, d.sha256,
       d.text_sha256, d.last_verified_at, e.etag, e.size, e.content_type
from   regulations_documents d
       left join regulations_evidence e on e.url = d.url and e.sha256 = d.sha256
where  d.key in (@each(:keys, text));

-- name: regulations_stored_bodies
select sha256
from   regulations_bodies
where  sha256 in (@each(:hashes, text));

-- name: regulations_has_version
-- Whether a document had this content at any time. Evidence does not show that: two sources that
-- list one URL share it.
select 1 as found
from   regulations_captures
where  key = :key and sha256 = :sha256
limit  1;

-- name: regulations_add_texts
insert into regulations_texts (sha256, text)
select sha256, text
from   @rows(sha256 text, text text) batch
where  true
on conflict (sha256) do nothing
returning sha256;

-- name: regulations_save_documents
-- What identifies a document stays as it was first seen; null leaves what is known unchanged.
insert into regulations_documents (key, source, canonical, url, title, published, part, year, issue,
                                   act, eli, content_class, sha256, text_sha256, found_by,
                                   captures_count, versions_count, first_seen_at, changed_at,
                                   last_verified_at, job_id, seq)
select key, source, canonical, url, coalesce(title, ''), published, part, year, issue, act, eli,
       content_class, sha256, text_sha256, found_by, 1, versions, @instant(captured_at),
       @instant(changed_at), @instant(captured_at), job_id, seq
from   @rows(key text, source text, canonical text, url text, title text, published text, part text,
             year bigint, issue bigint, act text, eli text, content_class text, sha256 text,
             text_sha256 text, found_by text, versions bigint, captured_at text, changed_at text,
             job_id bigint, seq bigint) batch
where  true
on conflict (key) do update
set url = excluded.url,
    title = coalesce(nullif(excluded.title, ''), regulations_documents.title),
    published = coalesce(excluded.published, regulations_documents.published),
    part = coalesce(excluded.part, regulations_documents.part),
    year = coalesce(excluded.year, regulations_documents.year),
    issue = coalesce(excluded.issue, regulations_documents.issue),
    act = coalesce(excluded.act, regulations_documents.act),
    eli = coalesce(excluded.eli, regulations_documents.eli),
    content_class = coalesce(excluded.content_class, regulations_documents.content_class),
    sha256 = excluded.sha256,
    text_sha256 = coalesce(excluded.text_sha256, regulations_documents.text_sha256),
    captures_count = regulations_documents.captures_count + 1,
    versions_count = regulations_documents.versions_count + excluded.versions_count,
    changed_at = coalesce(excluded.changed_at, regulations_documents.changed_at),
    last_verified_at = excluded.last_verified_at,
    unavailable_since = null, unavailable_reason = null,
    job_id = excluded.job_id, seq = excluded.seq
returning id;

-- name: regulations_verify_evidence
-- The only thing about evidence that ever changes.
update regulations_evidence
set    last_verified_at = @instant(batch.captured_at)
from   @rows(url text, sha256 text, captured_at text) batch
where  regulations_evidence.url = batch.url and regulations_evidence.sha256 = batch.sha256
returning id, regulations_evidence.url, regulations_evidence.sha256;

-- name: regulations_add_evidence
insert into regulations_evidence (key, url, sha256, text_sha256, content_class, content_type, title,
                                  size, etag, fetched_at, last_verified_at)
select key, url, sha256, text_sha256, content_class, content_type, title, size, etag,
       @instant(fetched_at), @instant(fetched_at)
from   @rows(key text, url text, sha256 text, text_sha256 text, content_class text,
             content_type text, title text, size bigint, etag text, fetched_at text) batch
where  true
on conflict (url, sha256) do nothing
returning id, url, sha256;

-- name: regulations_add_captures
insert into regulations_captures (key, evidence_id, url, final_url, sha256, text_sha256,
                                  captured_at, status, headers, reason, found_by, job_id, seq)
select batch.key, e.id, batch.url, batch.final_url, e.sha256, e.text_sha256,
       @instant(batch.captured_at), batch.status, batch.headers, batch.reason,
       batch.found_by, batch.job_id, batch.seq
from   @rows(key text, evidence_id bigint, url text, final_url text, captured_at text,
             status bigint, headers json, reason text, found_by text, job_id bigint,
             seq bigint) batch
       join regulations_evidence e on e.id = batch.evidence_id
where  true
returning id;

-- name: regulations_mark_unavailable
-- Marks a document that the source no longer gives, and since when.
update regulations_documents
set    unavailable_since = coalesce(unavailable_since, @now), unavailable_reason = :reason
where  key = :key
returning id;

-- Runs.

-- name: regulations_any_run
select id
from   jobs
where  pipeline = 'regulations'
limit  1;

-- name: regulations_add_count
insert into regulations_run_counts (job_id, source, reason, count)
values (:job_id, :source, :reason, :count)
on conflict (job_id, source, reason) do update
set count = regulations_run_counts.count + excluded.count
returning reason;

-- name: regulations_run_counts
select   source, reason, count
from     regulations_run_counts
where    job_id = :job_id
order by source, reason;

-- name: regulations_delete_job_counts
-- What a run counted is deleted with it. Evidence is not.
delete from regulations_run_counts
where  job_id = :job_id and reason in (select   c.reason
                                       from     regulations_run_counts c
                                       where    c.job_id = :job_id
                                       order by c.reason
                                       limit    :limit)
returning reason;

-- name: regulations_forms_of
select key, url
from   regulations_forms
where  key in (@each(:keys, text));

-- name: regulations_add_forms
insert into regulations_forms (key, url)
select key, url
from   @rows(key text, url text) batch
where  true
on conflict (key, url) do nothing
returning key;

-- name: regulations_mark_sitemap
insert into regulations_sitemaps (source, url, definition, modified, etag, read_at, job_id)
values (:source, :url, :definition, :modified, :etag, @now, :job_id)
on conflict (source, url) do update
set definition = excluded.definition, modified = excluded.modified, etag = excluded.etag,
    read_at = excluded.read_at, job_id = excluded.job_id
returning url;

-- name: regulations_forget_sitemap
-- Marks a sitemap because a URL of it failed and may exist later: it is read again, even if it is
-- unchanged. The run that read it may only mark it later.
insert into regulations_sitemaps (source, url, definition, read_at, job_id, failed_job)
values (:source, :url, '', @now, :job_id, :job_id)
on conflict (source, url) do update
set definition = '', failed_job = excluded.failed_job
returning url;

-- name: regulations_delete_job_sitemaps
-- Forgets sitemaps of a run that did not fetch all of their URLs.
delete from regulations_sitemaps
where  job_id = :job_id and :limit > 0
       and (select sum(c.accepted - coalesce(c.done, 0)) from counters c where c.job_id = :job_id) > 0
returning url;

-- name: regulations_sitemaps_read
-- Sitemaps whose URLs were all taken, as the source is defined now; not by a run that was cancelled
-- before it fetched them.
select s.url, s.modified, s.etag
from   regulations_sitemaps s
       left join jobs j on j.id = s.job_id
where  s.source = :source and s.definition = :definition
       and (s.failed_job is null or s.failed_job <> s.job_id)
       and (j.id is null or j.state <> 'CANCELLED');

-- name: regulations_keep_index
-- What an index lists, for the walk that read it; other walks read it again.
insert into regulations_indexes (job_id, source, url, children)
values (:job_id, :source, :url, :children)
on conflict (job_id, source, url) do update
set children = excluded.children
returning url;

-- name: regulations_indexes_read
select url, children
from   regulations_indexes
where  job_id = :job_id and source = :source;

-- name: regulations_forget_indexes
delete from regulations_indexes
where  job_id = :job_id and source = :source
returning url;

-- name: regulations_delete_job_indexes
delete from regulations_indexes
where  job_id = :job_id and :limit > 0
returning url;

-- name: regulations_streams_ahead
-- How many sources of the job are read before this one.
select count(*) as ahead
from   streams s
where  s.job_id = :job_id and s.state = 'RUNNING'
       and s.id < (select o.id from streams o where o.job_id = :job_id and o.source = :source);

-- name: regulations_progress
-- New, known and failed URLs of a run so far.
select coalesce(cast(sum(c.accepted) as bigint), 0) as accepted,
       coalesce(cast(sum(c.known) as bigint), 0) as known,
       coalesce(cast(sum(c.error) as bigint), 0) as errors
from   counters c
where  c.job_id = :job_id;

-- name: regulations_documents_of
-- Which of these documents have evidence.
select key
from   regulations_documents
where  key in (@each(:keys, text)) and sha256 is not null;

-- name: regulations_due
-- Documents that were last verified before a time, in the order of their ids.
select   id, key, canonical, url, last_verified_at
from     regulations_documents
where    source = :source and id > :after
         and (last_verified_at is null or last_verified_at < :before)
order by id
limit    :limit;

-- Search.

-- name: regulations_search_enqueue
insert into regulations_search_queue (batch)
values (:batch)
returning id;

-- name: regulations_search_next
select   id, batch
from     regulations_search_queue
order by id
limit    1
@skip_locked;

-- name: regulations_search_dequeue
delete from regulations_search_queue
where  id = :id
returning id;

-- name: regulations_search_ids
select id
from   regulations_documents
where  id in (@each(:ids, bigint));

-- name: regulations_search_remove
delete from regulations_search
where  rowid in (@each(:ids, bigint));

-- name: regulations_search_add
insert into regulations_search (rowid, words)
select id, @words(content)
from   (select d.id, d.title || ' ' || coalesce(t.text, '') as content
        from   regulations_documents d
               left join regulations_texts t on t.sha256 = d.text_sha256
        where  d.id in (@each(:ids, bigint))) documents
where  true
@replaced_words;

-- Reading evidence.

-- name: regulations_body
select sha256, size, packed_size, place, packed
from   regulations_bodies
where  sha256 = :sha256;

-- fragment: regulations_evidence_of_sources
regulations_evidence e join regulations_documents d on d.key = e.key
where d.source in (@each(:sources, text))

-- name: regulations_bodies_page
-- Bodies in the order of their hashes, from one on.
select   sha256, size, packed_size, place, packed
from     regulations_bodies
where    sha256 > :after
         and (:every = 1 or sha256 in (select e.sha256 from @regulations_evidence_of_sources))
order by sha256
limit    :limit;

-- name: regulations_texts_page
select   sha256, text
from     regulations_texts
where    sha256 > :after
         and (:every = 1 or sha256 in (select e.text_sha256 from @regulations_evidence_of_sources))
order by sha256
limit    :limit;

-- name: regulations_orphans
-- Captures whose body, evidence or document is missing.
select   c.id, c.url, c.sha256
from     regulations_captures c
         left join regulations_bodies b on b.sha256 = c.sha256
         left join regulations_evidence e on e.id = c.evidence_id and e.sha256 = c.sha256
         left join regulations_documents d on d.key = c.key
where    (b.sha256 is null or e.id is null or d.id is null)
         and (:every = 1 or d.source in (@each(:sources, text)))
order by c.id
limit    :limit;

-- name: regulations_captures_page
-- Captures in the order in which they were made, from one on; of some sources or of all.
select   c.id, c.key, c.url, c.final_url, c.sha256, c.captured_at, c.status, c.headers, c.reason,
         b.size
from     regulations_captures c
         join regulations_documents d on d.key = c.key
         join regulations_bodies b on b.sha256 = c.sha256
where    c.id > :after and (:every = 1 or d.source in (@each(:sources, text)))
order by c.id
limit    :limit;

-- name: regulations_captures_of_item
select   c.id, c.url, c.sha256, c.captured_at, c.status, c.reason, b.size, d.id as document_id
from     regulations_captures c
         join regulations_documents d on d.key = c.key
         join regulations_bodies b on b.sha256 = c.sha256
where    c.job_id = :job_id and c.seq = :seq
order by c.id;

-- fragment: regulations_staleness
-- The same rules as in content.py.
case when unavailable_since is not null and unavailable_since > last_verified_at
     then case when unavailable_since <= :expired then 'EXPIRED' else 'UNAVAILABLE' end
     when last_verified_at <= :stale then 'STALE'
     when last_verified_at <= :aging then 'AGING'
     else 'FRESH' end

-- name: regulations_health
select   source, count(*) as documents, max(last_verified_at) as last_verified_at,
         max(changed_at) as changed_at,
         cast(sum(case when state = 'FRESH' then 1 else 0 end) as bigint) as fresh,
         cast(sum(case when state = 'AGING' then 1 else 0 end) as bigint) as aging,
         cast(sum(case when state = 'STALE' then 1 else 0 end) as bigint) as stale,
         cast(sum(case when state in ('UNAVAILABLE', 'EXPIRED') then 1 else 0 end) as bigint)
             as unavailable
from     (select source, last_verified_at, changed_at, @regulations_staleness as state
          from   regulations_documents) documents
group by source
order by source;

-- name: regulations_documents_page
-- Documents, the newest first, from one on.
select   id, key, source, url, title, published, eli, content_class, sha256, captures_count,
         versions_count, first_seen_at, changed_at, last_verified_at, unavailable_since
from     regulations_documents
where    id < :before and source = coalesce(cast(:source as text), source)
         and (cast(:staleness as text) is null
              or @regulations_staleness = cast(:staleness as text))
order by id desc
limit    :limit;

-- name: regulations_document
select id, key, source, canonical, url, title, published, part, year, issue, act, eli,
       content_class, sha256, text_sha256, found_by, captures_count, versions_count, first_seen_at,
       changed_at, last_verified_at, unavailable_since, unavailable_reason, job_id, seq
from   regulations_documents
where  id = :id;

-- name: regulations_captures_of
select   c.id, c.evidence_id, c.url, c.final_url, c.sha256, c.text_sha256, c.captured_at, c.status,
         c.headers, c.reason, c.found_by, c.job_id, c.seq, b.size
from     regulations_captures c
         join regulations_bodies b on b.sha256 = c.sha256
where    c.key = :key
order by c.id desc
limit    :limit;

-- name: regulations_versions_of
-- Each text once, the latest first.
select   c.text_sha256, min(c.captured_at) as captured_at, max(c.id) as last_id, t.text
from     regulations_captures c
         join regulations_texts t on t.sha256 = c.text_sha256
where    c.key = :key
group by c.text_sha256, t.text
order by max(c.id) desc
limit    :limit;

-- name: regulations_text
select text
from   regulations_texts
where  sha256 = :sha256;

-- name: regulations_evidence_row
select id, key, url, sha256, content_class, content_type, title, size, fetched_at, last_verified_at
from   regulations_evidence
where  id = :id;

-- name: regulations_run_reasons
select   d.source, c.reason, count(*) as count
from     regulations_captures c
         join regulations_documents d on d.key = c.key
where    c.job_id = :job_id
group by d.source, c.reason
order by d.source, c.reason;

-- name: regulations_search
-- Documents with these words, newest first, from one on. Snippets are expensive, so they are made
-- for these only.
with matches as materialized (
    select   d.id as document_id
    from     regulations_search
             join regulations_documents d on d.id = regulations_search.rowid
    where    @has_words(regulations_search, :words)
             and d.source = coalesce(cast(:source as text), d.source) and d.id < :before
    order by d.id desc
    limit    :limit
)
select   d.id, d.source, d.url, d.title, d.published, d.eli, d.content_class,
         @snippet(regulations_search, t.text, :words) as snippet
from     matches
         cross join regulations_search
         join regulations_documents d on d.id = regulations_search.rowid
         left join regulations_texts t on t.sha256 = d.text_sha256
where    regulations_search.rowid = matches.document_id
         and @has_words(regulations_search, :words)
order by d.id desc;
