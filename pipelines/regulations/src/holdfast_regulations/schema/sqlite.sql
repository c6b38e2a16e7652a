-- Words of the documents, and batches whose words are not in it yet: see holdfast/text_search.py.
create virtual table regulations_search using fts5 (words, tokenize = 'porter unicode61');

create table regulations_search_queue (
    id    @id,
    batch text not null
);

-- Evidence is never changed or deleted. INSERT OR REPLACE would delete the old row without its
-- delete trigger, so it is ignored. Of some tables only what identifies a row never changes.

create trigger regulations_bodies_no_update before update on regulations_bodies
begin select raise(abort, 'evidence is never changed or deleted'); end;
create trigger regulations_bodies_no_delete before delete on regulations_bodies
begin select raise(abort, 'evidence is never changed or deleted'); end;
create trigger regulations_bodies_no_replace before insert on regulations_bodies
when exists (select 1 from regulations_bodies where sha256 = new.sha256)
begin select raise(ignore); end;

create trigger regulations_texts_no_update before update on regulations_texts
begin select raise(abort, 'evidence is never changed or deleted'); end;
create trigger regulations_texts_no_delete before delete on regulations_texts
begin select raise(abort, 'evidence is never changed or deleted'); end;
create trigger regulations_texts_no_replace before insert on regulations_texts
when exists (select 1 from regulations_texts where sha256 = new.sha256)
begin select raise(ignore); end;

create trigger regulations_captures_no_update before update on regulations_captures
begin select raise(abort, 'evidence is never changed or deleted'); end;
create trigger regulations_captures_no_delete before delete on regulations_captures
begin select raise(abort, 'evidence is never changed or deleted'); end;
create trigger regulations_captures_no_replace before insert on regulations_captures
when exists (select 1 from regulations_captures where id = new.id)
begin select raise(ignore); end;

create trigger regulations_evidence_no_update before update of id, key, url, sha256, text_sha256,
    content_class, content_type, title, size, etag, fetched_at on regulations_evidence
begin select raise(abort, 'evidence is never changed or deleted'); end;
create trigger regulations_evidence_no_delete before delete on regulations_evidence
begin select raise(abort, 'evidence is never changed or deleted'); end;
create trigger regulations_evidence_no_replace before insert on regulations_evidence
when exists (
    select 1 from regulations_evidence
    where  id = new.id or (url = new.url and sha256 = new.sha256)
)
begin select raise(ignore); end;

create trigger regulations_documents_no_update before update of id, key, source, canonical,
    first_seen_at on regulations_documents
begin select raise(abort, 'evidence is never changed or deleted'); end;
create trigger regulations_documents_no_delete before delete on regulations_documents
begin select raise(abort, 'evidence is never changed or deleted'); end;
