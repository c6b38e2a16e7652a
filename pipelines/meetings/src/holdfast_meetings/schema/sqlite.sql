-- Words of the pages, and batches whose words are not in it yet: see holdfast/text_search.py.
create virtual table meetings_search using fts5 (words, tokenize = 'porter unicode61');

create table meetings_search_queue (
    id    @id,
    batch text not null
);
