-- The meetings pipeline's batches, as SQLite takes them: one row after the other.

-- name: hold_meeting_collection
-- SQLite has one writer at a time, so there is nothing to hold.
select :collection;

-- name: find_meeting_documents
select id, meeting, date
from   meeting_documents
where  municipality_id = ? and document_type = ? and meeting = ? and date = ?;

-- name: add_meeting_documents
insert into meeting_documents (municipality_id, document_type, meeting, date)
values (?, ?, ?, ?)
on conflict (municipality_id, document_type, meeting, date) do nothing
returning id, meeting, date;

-- name: find_meeting_pages
select id, document_id, number, upstream_id, content_hash, job_id,
       case when vanished_at is null then 0 else 1 end
from   meeting_pages
where  document_id = ? and number = ?;

-- name: change_meeting_pages
update meeting_pages
set    upstream_id = ?, content_hash = ?, text = ?, page_image = ?, extra = ?, job_id = ?,
       vanished_at = null, updated_at = @now
where  id = ?
returning id;

-- name: find_meeting_versions
select upstream_id, page_id, state
from   meeting_page_history
where  municipality_id = ? and document_type = ? and upstream_id = ?;

-- name: keep_meeting_versions
-- The page as it is now becomes history, under its present upstream id.
insert into meeting_page_history (municipality_id, document_type, upstream_id, page_id, state,
                                  content_hash, text, page_image, extra, job_id)
select municipality_id, document_type, upstream_id, id, ?, content_hash, text, page_image, extra,
       job_id
from   meeting_pages
where  id = ?
on conflict (municipality_id, document_type, upstream_id) do update
set page_id = excluded.page_id, state = excluded.state, content_hash = excluded.content_hash,
    text = excluded.text, page_image = excluded.page_image, extra = excluded.extra,
    job_id = excluded.job_id, at = excluded.at
returning page_id;

-- name: add_meeting_versions
-- A row that gives way to another one for the same page.
insert into meeting_page_history (municipality_id, document_type, upstream_id, page_id, state,
                                  content_hash, text, page_image, extra, job_id)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (municipality_id, document_type, upstream_id) do nothing
returning page_id;

-- name: add_meeting_rejects
insert into meeting_rejects (municipality_id, document_type, upstream_id, job_id, seq)
values (?, ?, ?, ?, ?)
on conflict (municipality_id, document_type, upstream_id) do update
set job_id = excluded.job_id, seq = excluded.seq, at = excluded.at
returning upstream_id;

-- name: add_meeting_differences
insert into meeting_differences (job_id, kind, upstream_id, page_id)
values (?, ?, ?, ?)
on conflict (job_id, kind, upstream_id) do nothing
returning upstream_id;

-- name: unindex_meeting_pages
delete from meeting_search
where  rowid in (@each(:ids, bigint));

-- name: index_meeting_pages
insert into meeting_search (rowid, text)
select id, text
from   meeting_pages
where  id in (@each(:ids, bigint)) and vanished_at is null;

-- name: search_meetings
-- Pages with these words, newest first, from a position on. Characters 2 and 3 stand around what
-- was found: no text that people read has them. Only what is shown gets a snippet, which costs.
select   p.id, d.id, m.subdomain, m.name, d.document_type, d.meeting, d.date, p.number,
         p.vanished_at, snippet(meeting_search, 0, char(2), char(3), ' … ', 30)
from     meeting_search
         join meeting_pages p on p.id = meeting_search.rowid
         join meeting_documents d on d.id = p.document_id
         join municipalities m on m.id = d.municipality_id
where    meeting_search match :words and meeting_search.rowid in (
             select   p.id
             from     meeting_search
                      join meeting_pages p on p.id = meeting_search.rowid
                      join meeting_documents d on d.id = p.document_id
                      join municipalities m on m.id = d.municipality_id
             where    meeting_search match :words
                      and m.subdomain = coalesce(cast(:subdomain as text), m.subdomain)
                      and (d.date, p.id) < (:date, :page_id)
             order by d.date desc, p.id desc
             limit    :limit)
order by d.date desc, p.id desc;

-- name: meeting_words_found
-- A page's text with what was found in it between characters 2 and 3.
select highlight(meeting_search, 0, char(2), char(3))
from   meeting_search
where  meeting_search match :words and rowid = :page_id;

-- name: meeting_pages_by_upstream
select id
from   meeting_pages
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id in (@each(:ids, text));

-- name: drop_meeting_rejects
-- Rejected rows that are upstream no more.
delete from meeting_rejects
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id in (@each(:ids, text))
returning upstream_id;

-- name: forget_meeting_versions
-- Older versions that are upstream again: they come in as if they had not been seen.
delete from meeting_page_history
where  municipality_id = :municipality_id and document_type = :document_type
       and upstream_id in (@each(:ids, text))
returning page_id;
