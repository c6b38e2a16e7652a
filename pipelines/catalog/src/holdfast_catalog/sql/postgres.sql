-- The queries of catalog that differ on PostgreSQL.

-- name: catalog_by_words
with matching as materialized (
    select s.rowid, ts_rank(s.words, query) as rank
    from   catalog_search s,
           cast(replace(replace(cast(:words as text), '"', ''''), ' OR ', ' | ') as tsquery) query
    where  s.words @@ query
    order by rank desc, s.rowid
    limit  :limit
)
select   p.title, p.price_minor, p.currency, p.brand, p.model, p.gtin, p.sku, p.url, p.source,
         p.condition, p.trusted
from     matching m join catalog_products p on p.id = m.rowid
order by m.rank desc, p.id;

-- name: catalog_index
insert into catalog_search (rowid, words)
select id, array_to_tsvector(string_to_array(words, ' '))
from   catalog_products
where  id in (@each(:ids, bigint)) and words <> '';

-- name: catalog_finds_misspelt
select count(*) as found
from   pg_extension e join pg_namespace n on n.oid = e.extnamespace
where  e.extname = 'pg_trgm' and n.nspname = 'public';

-- name: catalog_by_likeness
-- Products with similar words, for lists that misspell all of them.
with matching as materialized (
    select   p.id, sum(public.word_similarity(w.word, p.words)) as likeness
    from     pg_catalog.unnest(string_to_array(cast(:text as text), ' ')) w(word)
             join catalog_products p on w.word operator(public.<%) p.words
    where    length(w.word) > 3
    group by p.id
    order by likeness desc, p.id
    limit    :limit
)
select   p.title, p.price_minor, p.currency, p.brand, p.model, p.gtin, p.sku, p.url, p.source,
         p.condition, p.trusted
from     matching m join catalog_products p on p.id = m.id
order by m.likeness desc, p.id;
