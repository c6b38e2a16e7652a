-- Words of the products.
create table catalog_search (
    rowid bigint primary key,
    words tsvector not null
);
create index catalog_search_by_words on catalog_search using gin (words);

-- Misspelt words are found by trigrams. The extension serves a whole database, so it is in `public`.
-- Without the right to create it, or without its files, the catalogue works with exact words.
do $$
begin
    create extension if not exists pg_trgm schema public;
    create index catalog_products_by_trigrams
    on catalog_products using gin (words public.gin_trgm_ops);
exception
    when insufficient_privilege or undefined_file or feature_not_supported or undefined_object
         or invalid_schema_name then
        raise notice 'pg_trgm cannot be created: misspelt words are not found';
end
$$;
