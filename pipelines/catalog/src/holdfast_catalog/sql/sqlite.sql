-- The queries of catalog that differ on SQLite.

-- name: catalog_by_words
select   p.title, p.price_minor, p.currency, p.brand, p.model, p.gtin, p.sku, p.url, p.source,
         p.condition, p.trusted
from     catalog_search s join catalog_products p on p.id = s.rowid
where    s.words match :words
order by bm25(catalog_search), p.id
limit    :limit;

-- name: catalog_index
insert into catalog_search (rowid, words)
select id, words from catalog_products where id in (@each(:ids, bigint));

-- name: catalog_finds_misspelt
select 0 as found;

-- name: catalog_by_likeness
-- SQLite has no trigrams, which tolerate errors.
select title, price_minor, currency, brand, model, gtin, sku, url, source, condition, trusted
from   catalog_products
where  cast(:text as text) is null
limit  :limit;
