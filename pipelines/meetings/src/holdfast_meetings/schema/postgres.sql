-- Words of the pages, and batches whose words are not in it yet: see holdfast/text_search.py.
create table meetings_search (
    rowid bigint primary key,
    words tsvector not null
);
create index meetings_search_by_words on meetings_search using gin (words);

create table meetings_search_queue (
    id    @id,
    batch json not null
);

-- Long texts are compressed by lz4, and up to four kilobytes stay in their row: core's
-- schema/postgres.sql explains why. A server that was built without lz4 continues as before.
alter table meetings_pages set (toast_tuple_target = 4080);
alter table meetings_page_history set (toast_tuple_target = 4080);
do $$
begin
    alter table meetings_pages alter column text set compression lz4;
    alter table meetings_page_history alter column text set compression lz4;
exception when feature_not_supported then null;
end
$$;
