-- The queries of meetings that differ on SQLite.

-- name: meetings_change_pages
-- Row by row: for texts, one update of many rows takes SQLite 50 % longer.
update meetings_pages
set    upstream_id = :upstream_id, content_hash = :content_hash, text = :text,
       page_image = :page_image, extra = :extra, job_id = :job_id, vanished_at = null,
       updated_at = @now
where  id = :id
returning id;
