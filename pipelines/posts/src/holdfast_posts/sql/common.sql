-- Events: added in the transaction that remembers their message.

-- name: posts_take_event
-- Adds an event whose batch is processed now. Returns nothing if it was processed before, or if its
-- id came with another batch.
insert into posts_events (key, format, state, queue, attempts, batch_key, scope, job_id, platform,
                          sent_at, warnings)
values (:key, :format, 'TAKEN', :queue, 1, :batch_key, :scope, :job_id, :platform,
        @instant(:sent_at), :warnings)
on conflict (key) do update
set    state = 'TAKEN', code = null, reason = null, body = null, due_at = null,
       attempts = posts_events.attempts + 1, updated_at = @now
where  posts_events.state in ('PARKED', 'WAITING', 'DEAD')
       and posts_events.batch_key = excluded.batch_key
returning key;

-- name: posts_set_aside_event
-- Adds an event that is not processed now, with its message. One that was processed stays so.
insert into posts_events (key, format, state, code, reason, queue, body, attempts, due_at,
                          batch_key, scope, job_id, platform, sent_at, warnings)
values (:key, :format, :state, :code, :reason, :queue, :body, 1, @after(:seconds), :batch_key,
        :scope, :job_id, :platform, @instant(:sent_at), :warnings)
on conflict (key) do update
set    state = excluded.state, code = excluded.code, reason = excluded.reason,
       body = excluded.body, due_at = excluded.due_at, queue = excluded.queue,
       attempts = case when posts_events.state = excluded.state
                       then posts_events.attempts + 1 else 1 end,
       updated_at = @now
where  posts_events.state in ('PARKED', 'WAITING', 'DEAD')
       and posts_events.batch_key = excluded.batch_key
returning attempts;

-- name: posts_event_of_another_batch
select key
from   posts_events
where  key = :key and batch_key <> :batch_key;

-- name: posts_event_attempts
select attempts
from   posts_events
where  key in (@each(:keys, text)) and batch_key = :batch_key and state = 'WAITING';

-- name: posts_repeat_event
-- Another event brought the same batch before.
update posts_events
set    state = 'REPEATED', updated_at = @now
where  key = :key
returning key;

-- name: posts_due_events
-- Events to try again, without those whose format is switched off.
select   key, state, format, job_id, length(body) as size,
         case when exists (select 1 from posts_batches b
                           where  b.batch_key = 'shadow:' || posts_events.batch_key)
              then 1 else 0 end as shadowed
from     posts_events
where    state in ('PARKED', 'WAITING') and due_at <= @now
         and (state = 'WAITING' or (format = 'event' and :new = 1)
              or (format <> 'event' and :legacy = 1))
order by due_at
limit    :limit
@skip_locked;

-- name: posts_unsent
-- Whether messages that were to be sent again are still here.
select 1 as found
from   outbox
where  exchange = '' and created_at < @after(:ago)
limit  1;

-- name: posts_messages
select key, queue, body
from   posts_events
where  key in (@each(:keys, text));

-- name: posts_put_off_events
-- Notes that they were sent to their queue again; if that gets lost, they are sent once more later.
update posts_events
set    due_at = @after(:seconds), updated_at = @now
where  key in (@each(:keys, text))
returning key;

-- name: posts_release_events
-- Marks events to be tried again at once: those of a state, or one.
update posts_events
set    due_at = @now, updated_at = @now,
       state = case when state = 'DEAD' then 'WAITING' else state end,
       attempts = case when state = 'DEAD' then 0 else attempts end
where  state in ('PARKED', 'WAITING', 'DEAD')
       and (cast(:state as text) is null or state = :state)
       and (cast(:key as text) is null or key = :key or key = 'event:' || :key)
returning key;

-- name: posts_add_batch
-- Returns nothing if the batch exists already.
insert into posts_batches (batch_key, event_key, format, state, scope, project_id, project_method,
                           job_id, platform, task_type, keyword, batch_index, total_batches,
                           content_count, items_count, shadow, warnings, sent_at, finished_at)
values (:batch_key, :event_key, :format, :state, :scope, :project_id, :project_method, :job_id,
        :platform, :task_type, :keyword, :batch_index, :total_batches, :content_count,
        :items_count, :shadow, :warnings, @instant(:sent_at),
        case when cast(:state as text) = 'DONE' then @now end)
on conflict (batch_key) do nothing
returning id;

-- Written while items are settled.

-- name: posts_hold_batches
-- One worker at a time counts the items of a batch, so that one of them sees the last.
select   id, batch_key, scope, project_id, job_id, platform, task_type, keyword, batch_index,
         items_count, sent_at, received_at, state, shadow, @now as now
from     posts_batches
where    id in (@each(:ids, bigint))
order by id
@for_update;

-- name: posts_add_items
insert into posts_batch_items (batch_id, position, content_id, status, sentiment, score,
                               impact_score, error)
select batch_id, position, content_id, status, sentiment, score, impact_score, error
from   @rows(batch_id bigint, position bigint, content_id text, status text, sentiment text,
             score double precision, impact_score double precision, error text) batch
where  true
on conflict (batch_id, position) do update
set    content_id = excluded.content_id, status = excluded.status, sentiment = excluded.sentiment,
       score = excluded.score, impact_score = excluded.impact_score, error = excluded.error
returning batch_id;

-- name: posts_count_items
select   batch_id, status, count(*) as items
from     posts_batch_items
where    batch_id in (@each(:ids, bigint))
group by batch_id, status;

-- name: posts_set_counts
update posts_batches
set    success_count = n.success, error_count = n.error, failed_count = n.failed,
       state = case when n.success + n.error + n.failed >= items_count then 'DONE' else state end,
       finished_at = case when n.success + n.error + n.failed >= items_count
                          then coalesce(finished_at, @now) end
from   @rows(id bigint, success bigint, error bigint, failed bigint) n
where  posts_batches.id = n.id
returning posts_batches.id;

-- name: posts_items_of_batch
select   position, content_id, status, sentiment, score, impact_score, error
from     posts_batch_items
where    batch_id = :batch_id
order by position
limit    :limit;

-- fragment: posts_insertion
insert into posts_analytics (
    scope, platform, content_id, project_id, job_id, batch_id, batch_index, task_type,
    keyword_source, pipeline_version, crawled_at, version_at, fetch_status, fetch_error, error_code,
    error_details, permalink, author_id, author_name, text, language, published_at, day,
    analyzed_at, overall_sentiment, sentiment_score, sentiment_confidence, sentiment_probabilities,
    not_analysed, primary_intent, intent_confidence, impact_score, risk_level, is_viral, is_kol,
    impact_breakdown, aspects_breakdown, keywords, view_count, like_count, comment_count,
    share_count, save_count, follower_count, processing_time_ms, model_version)
select
    scope, platform, content_id, project_id, job_id, batch_id, batch_index, task_type,
    keyword_source, pipeline_version, @instant(crawled_at), @instant(version_at), fetch_status,
    fetch_error, error_code, error_details, permalink, author_id, author_name, text, language,
    @instant(published_at), day, @now, overall_sentiment, sentiment_score, sentiment_confidence,
    sentiment_probabilities, not_analysed, primary_intent, intent_confidence, impact_score,
    risk_level, is_viral, is_kol, impact_breakdown, aspects_breakdown, keywords, view_count,
    like_count, comment_count, share_count, save_count, follower_count, processing_time_ms,
    model_version
from @rows(scope text, platform text, content_id text, project_id text, job_id text,
           batch_id bigint, batch_index bigint, task_type text, keyword_source text,
           pipeline_version text, crawled_at text, version_at text, fetch_status text,
           fetch_error text, error_code text, error_details json, permalink text, author_id text,
           author_name text, text text, language text, published_at text, day text,
           overall_sentiment text, sentiment_score double precision,
           sentiment_confidence double precision, sentiment_probabilities json, not_analysed text,
           primary_intent text, intent_confidence double precision, impact_score double precision,
           risk_level text, is_viral smallint, is_kol smallint, impact_breakdown json,
           aspects_breakdown json, keywords json, view_count bigint, like_count bigint,
           comment_count bigint, share_count bigint, save_count bigint, follower_count bigint,
           processing_time_ms double precision, model_version text) batch
where true

-- name: posts_insert
-- Adds posts that did not exist. Existing ones are not returned.
@posts_insertion
on conflict (scope, platform, content_id) do nothing
returning scope, platform, content_id;

-- name: posts_hold
-- What posts that may be replaced count for, locked until the commit: no other transaction counts
-- it at the same time.
select   p.scope, p.platform, p.content_id, p.day,
         coalesce(p.overall_sentiment, 'NOT_ANALYSED') as sentiment, p.primary_intent as intent,
         coalesce(p.risk_level, 'UNKNOWN') as risk, coalesce(p.is_viral, 0) as viral,
         coalesce(p.impact_score, 0) as impact
from     @rows(scope text, platform text, content_id text) k
         join posts_analytics p on p.scope = k.scope and p.platform = k.platform
                                and p.content_id = k.content_id
order by p.scope, p.platform, p.content_id
@for_update_of(p);

-- name: posts_replace
-- The newer crawl takes precedence; if two are of the same time, the later batch.
@posts_insertion
on conflict (scope, platform, content_id) do update
set project_id = excluded.project_id, job_id = excluded.job_id, batch_id = excluded.batch_id,
    batch_index = excluded.batch_index, task_type = excluded.task_type,
    keyword_source = excluded.keyword_source, pipeline_version = excluded.pipeline_version,
    crawled_at = excluded.crawled_at, version_at = excluded.version_at,
    fetch_status = excluded.fetch_status, fetch_error = excluded.fetch_error,
    error_code = excluded.error_code, error_details = excluded.error_details,
    permalink = excluded.permalink, author_id = excluded.author_id,
    author_name = excluded.author_name, text = excluded.text, language = excluded.language,
    published_at = excluded.published_at, day = excluded.day, analyzed_at = excluded.analyzed_at,
    overall_sentiment = excluded.overall_sentiment, sentiment_score = excluded.sentiment_score,
    sentiment_confidence = excluded.sentiment_confidence,
    sentiment_probabilities = excluded.sentiment_probabilities,
    not_analysed = excluded.not_analysed, primary_intent = excluded.primary_intent,
    intent_confidence = excluded.intent_confidence, impact_score = excluded.impact_score,
    risk_level = excluded.risk_level, is_viral = excluded.is_viral, is_kol = excluded.is_kol,
    impact_breakdown = excluded.impact_breakdown, aspects_breakdown = excluded.aspects_breakdown,
    keywords = excluded.keywords, view_count = excluded.view_count,
    like_count = excluded.like_count, comment_count = excluded.comment_count,
    share_count = excluded.share_count, save_count = excluded.save_count,
    follower_count = excluded.follower_count, processing_time_ms = excluded.processing_time_ms,
    model_version = excluded.model_version
where (excluded.version_at, excluded.batch_id)
      >= (posts_analytics.version_at, posts_analytics.batch_id)
returning scope, platform, content_id;

-- name: posts_stored
-- What is compared in shadow mode.
select p.scope, p.platform, p.content_id, p.overall_sentiment, p.primary_intent, p.risk_level,
       p.impact_score, p.project_id
from   @rows(scope text, platform text, content_id text) k
       join posts_analytics p on p.scope = k.scope and p.platform = k.platform
                              and p.content_id = k.content_id;

-- name: posts_add_differences
insert into posts_differences (scope, platform, content_id, field, stored, shadow, batch_id)
select scope, platform, content_id, field, stored, shadow, batch_id
from   @rows(scope text, platform text, content_id text, field text, stored text, shadow text,
             batch_id bigint) batch
where  true
on conflict (batch_id, content_id, field) do nothing
returning id;

-- name: posts_add_errors
insert into posts_crawl_errors (content_id, scope, project_id, job_id, platform, batch_key,
                                error_code, error_category, retry_class, error_message,
                                error_details, permalink, day)
select content_id, scope, project_id, job_id, platform, batch_key, error_code, error_category,
       retry_class, error_message, error_details, permalink, day
from   @rows(content_id text, scope text, project_id text, job_id text, platform text,
             batch_key text, error_code text, error_category text, retry_class text,
             error_message text, error_details json, permalink text, day text) batch
where  true
on conflict (job_id, content_id, error_code, batch_key) do nothing
returning scope, day, platform, error_code, error_category;

-- name: posts_change_days
-- What a settlement adds to the sums of days, and subtracts from them. The rows are appended, so
-- that settlements of one project do not wait for each other here.
insert into posts_day_changes (scope, day, platform, sentiment, intent, risk, posts, viral,
                               impact_sum)
select scope, day, platform, sentiment, intent, risk, posts, viral, impact_sum
from   @rows(scope text, day text, platform text, sentiment text, intent text, risk text,
             posts bigint, viral bigint, impact_sum double precision) batch
returning id;

-- name: posts_change_error_days
insert into posts_error_day_changes (scope, day, platform, code, category, errors)
select scope, day, platform, code, category, errors
from   @rows(scope text, day text, platform text, code text, category text, errors bigint) batch
returning id;

-- Daily sums: the changes are added to them in the background.

-- name: posts_day_changes
select   id, scope, day, platform, sentiment, intent, risk, posts, viral, impact_sum
from     posts_day_changes
order by id
limit    :limit
@skip_locked;

-- name: posts_drop_empty_days
-- Posts that moved to another day, sentiment, intent or risk leave nothing behind.
delete from posts_days
where  posts = 0 and scope in (@each(:scopes, text))
returning scope;

-- name: posts_forget_day_changes
delete from posts_day_changes
where  id in (@each(:ids, bigint))
returning id;

-- name: posts_add_to_days
insert into posts_days (scope, day, platform, sentiment, intent, risk, posts, viral, impact_sum)
select scope, day, platform, sentiment, intent, risk, posts, viral, impact_sum
from   @rows(scope text, day text, platform text, sentiment text, intent text, risk text,
             posts bigint, viral bigint, impact_sum double precision) batch
where  true
on conflict (scope, day, platform, sentiment, intent, risk) do update
set    posts = posts_days.posts + excluded.posts, viral = posts_days.viral + excluded.viral,
       impact_sum = posts_days.impact_sum + excluded.impact_sum
returning scope;

-- name: posts_error_day_changes
select   id, scope, day, platform, code, category, errors
from     posts_error_day_changes
order by id
limit    :limit
@skip_locked;

-- name: posts_forget_error_day_changes
delete from posts_error_day_changes
where  id in (@each(:ids, bigint))
returning id;

-- name: posts_add_to_error_days
insert into posts_error_days (scope, day, platform, code, category, errors)
select scope, day, platform, code, category, errors
from   @rows(scope text, day text, platform text, code text, category text, errors bigint) batch
where  true
on conflict (scope, day, platform, code, category) do update
set    errors = posts_error_days.errors + excluded.errors
returning scope;

-- Retention.

-- name: posts_old_errors
select   id, scope, day
from     posts_crawl_errors
where    created_at < @after(:ago)
order by created_at
limit    :limit;

-- name: posts_delete_errors
delete from posts_crawl_errors
where  id in (@each(:ids, bigint))
returning id;

-- name: posts_old_batches
select   id, batch_key
from     posts_batches
where    state = 'DONE' and finished_at < @after(:ago)
order by finished_at
limit    :limit;

-- name: posts_delete_batches
delete from posts_batches
where  id in (@each(:ids, bigint))
returning id;

-- name: posts_delete_batch_items
delete from posts_batch_items
where  batch_id in (@each(:ids, bigint))
returning batch_id;

-- name: posts_delete_events
delete from posts_events
where  batch_key in (@each(:keys, text)) and state in ('TAKEN', 'REPEATED')
returning key;

-- Queries of pages and commands.

-- name: posts_projects
-- Each project or dry run, by the daily sums.
select   d.scope as project, sum(d.posts) as posts,
         sum(case when d.sentiment = 'NEGATIVE' then d.posts else 0 end) as negative,
         sum(case when d.risk in ('CRITICAL', 'HIGH') then d.posts else 0 end) as risky,
         sum(d.viral) as viral, max(d.day) as last_day,
         coalesce((select sum(e.errors) from posts_error_days e where e.scope = d.scope), 0)
         as errors
from     posts_days d
group by d.scope
order by posts desc
limit    :limit;

-- name: posts_event_counts
select   state, format, code, count(*) as events
from     posts_events
group by state, format, code
order by state, format, code;

-- name: posts_days_of_scope
-- Sums of one project by day.
select   day, platform, sentiment, intent, risk, posts, viral, impact_sum
from     posts_days
where    scope = :scope and day >= :since
order by day;

-- name: posts_errors_by_day
-- Errors by code and day, of one project or of all.
select   day, code, category, sum(errors) as errors
from     posts_error_days
where    day >= :since and (cast(:scope as text) is null or scope = :scope)
group by day, code, category
order by day;

-- name: posts_recent_errors
select   id, content_id, scope, job_id, platform, error_code, error_category, retry_class,
         error_message, permalink, batch_key, created_at
from     posts_crawl_errors
where    (cast(:scope as text) is null or scope = :scope)
         and (cast(:code as text) is null or error_code = :code)
order by id desc
limit    :limit;

-- name: posts_top
-- The posts of a project with the highest impact since a day.
select   platform, content_id, permalink, author_name, text, overall_sentiment, primary_intent,
         risk_level, impact_score, published_at, not_analysed
from     posts_analytics
where    scope = :scope and day >= :since and impact_score is not null
order by impact_score desc
limit    :limit;

-- fragment: posts_batch_columns
id, batch_key, event_key, format, state, scope, job_id, platform, batch_index, content_count,
items_count, success_count, error_count, failed_count, shadow, warnings, sent_at, received_at,
finished_at, project_id, project_method, task_type, keyword

-- name: posts_batches
-- Batches, the newest first; of a project, of a crawler's job, or with this place or event.
select   @posts_batch_columns
from     posts_batches
where    id < :before
         and (cast(:scope as text) is null or scope = :scope)
         and (cast(:word as text) is null or job_id = :word or batch_key = :word
              or event_key = :word or event_key = 'event:' || :word)
order by id desc
limit    :limit;

-- name: posts_batch
select @posts_batch_columns
from   posts_batches
where  id = :id;

-- name: posts_events_of
-- Messages of a state, the newest first; or one by its key, its batch or its job.
select   key, format, state, code, reason, queue, attempts, due_at, batch_key, scope, job_id,
         platform, received_at, updated_at
from     posts_events
where    (cast(:state as text) is null or state = :state)
         and (cast(:word as text) is null or key = :word or key = 'event:' || :word
              or batch_key = :word or job_id = :word)
order by received_at desc
limit    :limit;
