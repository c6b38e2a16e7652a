-- The local catalogue, the shops, and what was asked of them.

create table catalog_products (
    id          @id,
    source      text not null,
    reference   text not null,
    title       text not null,
    brand       text not null,
    model       text not null,
    model_key   text not null,
    gtin        text,
    sku         text not null,
    price_minor bigint not null,
    currency    text not null,
    url         text not null,
    condition   text not null,
    trusted     smallint not null,
    words       text not null,
    updated_at  @instant not null default @now,
    unique (source, reference)
);
create index catalog_products_by_gtin on catalog_products (gtin) where gtin is not null;
create index catalog_products_by_model on catalog_products (model_key) where model_key <> '';
create index catalog_products_by_sku on catalog_products (sku) where sku <> '';

create table catalog_providers (
    name       text primary key,
    kind       text not null,
    priority   bigint not null,
    trusted    smallint not null,
    enabled    smallint not null,
    cost       @real not null,
    currency   text not null,
    settings   @json not null,
    updated_at @instant not null default @now
);

create table catalog_search_events (
    id       @id,
    job_id   bigint not null,
    seq      bigint not null,
    attempt  bigint not null,
    provider text not null,
    strategy text not null,
    query    text not null,
    success  smallint not null,
    results  bigint not null,
    seconds  @real not null,
    error    text,
    at       @instant not null default @now
);
create index catalog_search_events_by_item on catalog_search_events (job_id, seq, id);

create table catalog_photos (
    job_id    bigint not null,
    seq       bigint not null,
    name      text not null,
    hash      text not null,
    thumbnail text not null,
    primary key (job_id, seq)
);
create index catalog_photos_by_hash on catalog_photos (job_id, hash, seq);

create table catalog_photo_bands (
    job_id bigint not null,
    band   smallint not null,
    part   text not null,
    seq    bigint not null,
    primary key (job_id, band, part, seq)
) @clustered;
