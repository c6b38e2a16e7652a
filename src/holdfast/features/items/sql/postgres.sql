-- Where open items are, by job: ranges have no index over all jobs, nor by owner. Each arriving
-- record would pay for it; instead, a page asks every job with open items for its oldest.

-- fragment: jobs_with_ranges
hop(job_id) as (
    select min(job_id) from ranges
    union all
    select (select min(r.job_id) from ranges r where r.job_id > hop.job_id)
    from   hop
    where  hop.job_id is not null
)

-- fragment: open_ranges_of_it
cross join lateral
         (select   id, job_id, lo, hi, again, since, worker,
                   case when worker is not null then 1 else 2 end as state,
                   case when again = 0 then hi - lo + 1
                        else (select count(*)
                              from (select 1 from outcomes o where o.range_id = r.id
                                    limit :size) few) end as items
          from     ranges r
          where    job_id = j.id and (since, id) >= (:since, :id) and since <= :until
                   and (:want = 0 or :want = case when worker is not null then 1 else 2 end)
          order by since, id
          limit    :limit) open
where    j.state not in ('CANCELLED', 'DELETING') and (:any_pipeline = 1 or j.pipeline = :pipeline)

-- name: open_ranges
with recursive @jobs_with_ranges
select   open.*
from     hop
         join jobs j on j.id = hop.job_id
         @open_ranges_of_it
order by open.since, open.id
limit    :limit;

-- name: open_ranges_of_owner
with recursive @jobs_with_ranges
select   open.*
from     hop
         join jobs j on j.id = hop.job_id
         @open_ranges_of_it
         and j.owner_id = :scope
order by open.since, open.id
limit    :limit;
