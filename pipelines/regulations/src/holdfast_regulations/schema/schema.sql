-- Documents, their evidence and captures, and what runs counted.

create table regulations_documents (
    id                 @id,
    key                text @bytewise not null unique,
    source             text not null,
    canonical          text not null,
    url                text not null,
    title              text not null,
    published          text,
    part               text,
    year               bigint,
    issue              bigint,
    act                text,
    eli                text,
    content_class      text,
    sha256             text,
    text_sha256        text,
    found_by           text not null,
    captures_count     bigint not null,
    versions_count     bigint not null,
    first_seen_at      @instant not null,
    changed_at         @instant,
    last_verified_at   @instant,
    unavailable_since  @instant,
    unavailable_reason text,
    job_id             bigint not null,
    seq                bigint not null
);
create index regulations_documents_by_source on regulations_documents (source, id);

create table regulations_bodies (
    sha256      text @bytewise primary key,
    size        bigint not null,
    packed_size bigint not null,
    place       text not null,
    packed      @bytes,
    stored_at   @instant not null
);

create table regulations_texts (
    sha256 text @bytewise primary key,
    text   text not null
);

create table regulations_evidence (
    id               @id,
    key              text @bytewise not null,
    url              text not null,
    sha256           text @bytewise not null,
    text_sha256      text @bytewise,
    content_class    text not null,
    content_type     text not null,
    title            text not null,
    size             bigint not null,
    etag             text,
    fetched_at       @instant not null,
    last_verified_at @instant not null,
    unique (url, sha256)
);
create index regulations_evidence_by_key on regulations_evidence (key, id);
create index regulations_evidence_by_body on regulations_evidence (sha256);

create table regulations_captures (
    id          @id,
    key         text @bytewise not null,
    evidence_id bigint not null,
    url         text not null,
    final_url   text not null,
    sha256      text @bytewise not null,
    text_sha256 text @bytewise,
    captured_at @instant not null,
    status      bigint not null,
    headers     @json not null,
    reason      text not null,
    found_by    text not null,
    job_id      bigint not null,
    seq         bigint not null
);
create index regulations_captures_by_key on regulations_captures (key, id);
create index regulations_captures_by_item on regulations_captures (job_id, seq);

create table regulations_sitemaps (
    source     text not null,
    url        text @bytewise not null,
    definition text not null,
    modified   text,
    etag       text,
    read_at    @instant not null,
    job_id     bigint not null,
    failed_job bigint,
    primary key (source, url)
);

create table regulations_indexes (
    job_id   bigint not null,
    source   text not null,
    url      text @bytewise not null,
    children text not null,
    primary key (job_id, source, url)
);

create table regulations_forms (
    key text @bytewise not null,
    url text @bytewise not null,
    primary key (key, url)
);

create table regulations_run_counts (
    job_id bigint not null,
    source text not null,
    reason text not null,
    count  bigint not null,
    primary key (job_id, source, reason)
);
