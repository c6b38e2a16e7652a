-- Municipalities, their documents and pages. Upstream ids are compared by their bytes.

create table meetings_municipalities (
    id           @id,
    subdomain    text not null unique,
    name         text not null,
    state        text,
    country      text,
    kind         text,
    url          text not null,
    zone         text not null,
    pages        bigint,
    last_updated text,
    latitude     @real,
    longitude    @real,
    popup_data   @json,
    created_at   @instant not null,
    updated_at   @instant not null
);

create table meetings_documents (
    id              @id,
    municipality_id bigint not null,
    document_type   text not null,
    meeting         text not null,
    date            text not null,
    created_at      @instant not null default @now,
    seen_job_id     bigint,
    changed_job_id  bigint,
    unique (municipality_id, document_type, meeting, date)
);
create index meetings_documents_by_date on meetings_documents (municipality_id, date, id);

create table meetings_pages (
    id              @id,
    document_id     bigint not null,
    municipality_id bigint not null,
    document_type   text not null,
    number          bigint not null,
    upstream_id     text @bytewise not null,
    content_hash    text not null,
    text            text not null,
    page_image      text,
    extra           @json,
    job_id          bigint not null,
    created_at      @instant not null default @now,
    updated_at      @instant not null default @now,
    vanished_at     @instant,
    unique (document_id, number)
);
create index meetings_pages_by_upstream on meetings_pages
    (municipality_id, document_type, upstream_id);

create table meetings_page_history (
    municipality_id bigint not null,
    document_type   text not null,
    upstream_id     text @bytewise not null,
    page_id         bigint not null,
    state           text not null,
    content_hash    text not null,
    text            text not null,
    page_image      text,
    extra           @json,
    job_id          bigint not null,
    at              @instant not null default @now,
    primary key (municipality_id, document_type, upstream_id)
) @clustered;
create index meetings_page_history_by_page on meetings_page_history (page_id);

create table meetings_rejects (
    municipality_id bigint not null,
    document_type   text not null,
    upstream_id     text @bytewise not null,
    job_id          bigint not null,
    seq             bigint not null,
    at              @instant not null default @now,
    primary key (municipality_id, document_type, upstream_id)
) @clustered;

create table meetings_counts (
    id                @id,
    job_id            bigint not null,
    documents_created bigint not null,
    pages_created     bigint not null,
    pages_updated     bigint not null,
    pages_unchanged   bigint not null,
    pages_rejected    bigint not null,
    documents_seen    bigint not null default 0,
    documents_updated bigint not null default 0
);
create index meetings_counts_by_job on meetings_counts (job_id);

create table meetings_differences (
    job_id      bigint not null,
    kind        text not null,
    upstream_id text @bytewise not null,
    page_id     bigint,
    primary key (job_id, kind, upstream_id)
) @clustered;
