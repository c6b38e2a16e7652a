-- Words of the documents, and batches whose words are not in it yet: see holdfast/text_search.py.
create table regulations_search (
    rowid bigint primary key,
    words tsvector not null
);
create index regulations_search_by_words on regulations_search using gin (words);

create table regulations_search_queue (
    id    @id,
    batch json not null
);

-- Evidence is never changed or deleted. Of some tables only what identifies a row never changes.

create trigger regulations_bodies_no_change before update or delete on regulations_bodies
for each row execute function regulations_refuse_1();
create trigger regulations_bodies_no_truncate before truncate on regulations_bodies
for each statement execute function regulations_refuse_1();

create trigger regulations_texts_no_change before update or delete on regulations_texts
for each row execute function regulations_refuse_1();
create trigger regulations_texts_no_truncate before truncate on regulations_texts
for each statement execute function regulations_refuse_1();

create trigger regulations_captures_no_change before update or delete on regulations_captures
for each row execute function regulations_refuse_1();
create trigger regulations_captures_no_truncate before truncate on regulations_captures
for each statement execute function regulations_refuse_1();

create trigger regulations_evidence_no_change before update of id, key, url, sha256, text_sha256,
    content_class, content_type, title, size, etag, fetched_at or delete on regulations_evidence
for each row execute function regulations_refuse_1();
create trigger regulations_evidence_no_truncate before truncate on regulations_evidence
for each statement execute function regulations_refuse_1();

create trigger regulations_documents_no_change before update of id, key, source, canonical,
    first_seen_at or delete on regulations_documents
for each row execute function regulations_refuse_1();
create trigger regulations_documents_no_truncate before truncate on regulations_documents
for each statement execute function regulations_refuse_1();
