-- The queries of catalog.

-- name: catalog_by_identifier
select title, price_minor, currency, brand, model, gtin, sku, url, source, condition, trusted
from   catalog_products
where  id in (
           select id from catalog_products where gtin = cast(:gtin as text)
           union
           select id from catalog_products where sku <> '' and sku = cast(:sku as text)
           union
           select id from catalog_products
           where  model_key <> '' and model_key = cast(:model as text)
       )
order by trusted desc, price_minor, id
limit  :limit;

-- name: catalog_save_products
insert into catalog_products
       (source, reference, title, brand, model, model_key, gtin, sku, price_minor, currency, url,
        condition, trusted, words)
select source, reference, title, brand, model, model_key, gtin, sku, price_minor, currency, url,
       condition, trusted, words
from   @rows(source text, reference text, title text, brand text, model text, model_key text,
             gtin text, sku text, price_minor bigint, currency text, url text, condition text,
             trusted smallint, words text) batch
where  true
on conflict (source, reference) do update
set    title = excluded.title, brand = excluded.brand, model = excluded.model,
       model_key = excluded.model_key, gtin = excluded.gtin, sku = excluded.sku,
       price_minor = excluded.price_minor, currency = excluded.currency, url = excluded.url,
       condition = excluded.condition, trusted = excluded.trusted, words = excluded.words,
       updated_at = @now
returning id;

-- name: catalog_unindex
delete from catalog_search where rowid in (@each(:ids, bigint));

-- name: catalog_drop_index_of
delete from catalog_search
where  rowid in (select id from catalog_products where source = :source);

-- name: catalog_drop_products
delete from catalog_products where source = :source returning id;

-- name: catalog_now
select cast(@now as text) as instant;

-- name: catalog_drop_older_index
delete from catalog_search
where  rowid in (select id from catalog_products
                 where  source = :source and updated_at < @instant(:before));

-- name: catalog_drop_older
delete from catalog_products
where  source = :source and updated_at < @instant(:before)
returning id;

-- name: catalog_sources
select   source, count(*) as products, max(trusted) as trusted, max(updated_at) as updated_at
from     catalog_products
group by source
order by source;

-- name: catalog_providers
select   name, kind, priority, trusted, enabled, cost, currency, settings
from     catalog_providers
order by priority, cost, name;

-- name: catalog_save_provider
insert into catalog_providers
       (name, kind, priority, trusted, enabled, cost, currency, settings)
values (:name, :kind, :priority, :trusted, :enabled, :cost, :currency, :settings)
on conflict (name) do update
set    kind = excluded.kind, priority = excluded.priority, trusted = excluded.trusted,
       enabled = excluded.enabled, cost = excluded.cost, currency = excluded.currency,
       settings = excluded.settings, updated_at = @now
returning name;

-- name: catalog_drop_provider
delete from catalog_providers where name = :name returning name;

-- name: catalog_save_search_events
insert into catalog_search_events
       (job_id, seq, attempt, provider, strategy, query, success, results, seconds, error)
select job_id, seq, attempt, provider, strategy, query, success, results, seconds, error
from   @rows(job_id bigint, seq bigint, attempt bigint, provider text, strategy text, query text,
             success smallint, results bigint, seconds double precision, error text) batch
returning id;

-- name: catalog_search_events_of_item
select   attempt, provider, strategy, query, success, results, seconds, error, at
from     catalog_search_events
where    job_id = :job_id and seq = :seq
order by id;

-- name: catalog_provider_figures
select   provider, count(*) as calls, sum(success) as answered, sum(results) as results,
         avg(seconds) as seconds
from     catalog_search_events
where    job_id = :job_id
group by provider
order by provider;

-- name: catalog_delete_job
delete from catalog_search_events
where  id in (select id from catalog_search_events where job_id = :job_id limit :limit)
returning id;

-- name: catalog_job_stays
select id from jobs where id = :job_id and state <> 'DELETING';

-- name: catalog_save_photos
insert into catalog_photos (job_id, seq, name, hash, thumbnail)
select job_id, seq, name, hash, thumbnail
from   @rows(job_id bigint, seq bigint, name text, hash text, thumbnail text) batch
where  true
on conflict (job_id, seq) do update
set    name = excluded.name, hash = excluded.hash, thumbnail = excluded.thumbnail
returning seq;

-- name: catalog_photo
select name, hash, thumbnail
from   catalog_photos
where  job_id = :job_id and seq = :seq;

-- name: catalog_save_photo_bands
insert into catalog_photo_bands (job_id, band, part, seq)
select job_id, band, part, seq
from   @rows(job_id bigint, band smallint, part text, seq bigint) batch
where  true
on conflict (job_id, band, part, seq) do nothing
returning seq;

-- name: catalog_alike_photos
-- Photographs of the job that have a part of the hash in common.
select seq, name, hash
from   catalog_photos
where  job_id = :job_id and seq <> :seq and seq in (
           select seq from catalog_photo_bands
           where  job_id = :job_id
                  and (band = 0 and part = :part0 or band = 1 and part = :part1
                       or band = 2 and part = :part2 or band = 3 and part = :part3
                       or band = 4 and part = :part4 or band = 5 and part = :part5
                       or band = 6 and part = :part6 or band = 7 and part = :part7)
       );

-- name: catalog_delete_job_photo_bands
delete from catalog_photo_bands
where  job_id = :job_id
       and seq in (select seq from catalog_photo_bands where job_id = :job_id limit :limit)
returning seq;

-- name: catalog_delete_job_photos
delete from catalog_photos
where  job_id = :job_id
       and seq in (select seq from catalog_photos where job_id = :job_id limit :limit)
returning seq;
