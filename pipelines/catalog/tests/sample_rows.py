"""A row for every table of catalog, for migrations with data in them."""

ROWS = {
    "catalog_products": (
        "(source, reference, title, brand, model, model_key, sku, price_minor, currency, url,"
        " condition, trusted, words) values ('shop', 'a', 'A', '', '', '', '', 1, 'USD', '', '',"
        " 1, 'a')"
    ),
    "catalog_providers": (
        "(name, kind, priority, trusted, enabled, cost, currency, settings)"
        " values ('shop', 'json', 1, 1, 1, 0, 'USD', '{}')"
    ),
    "catalog_search_events": (
        "(job_id, seq, attempt, provider, strategy, query, success, results, seconds)"
        " values (1, 1, 1, 'shop', 'combined', 'a', 1, 1, 0.1)"
    ),
    "catalog_photo_bands": "(job_id, band, part, seq) values (1, 0, 'ff', 1)",
    "catalog_photos": "(job_id, seq, name, hash, thumbnail) values (1, 1, 'a.jpg', 'ff', 'k')",
    "catalog_search": "(rowid, words) values (1, 'words')",
}
