-- Words of the products.
create virtual table catalog_search using fts5 (words, tokenize = 'unicode61');
