-- Events, batches, posts with their analytics, errors of crawlers, and daily sums.

create table posts_events (
    key         text primary key,
    format      text not null,
    state       text not null,
    code        text,
    reason      text,
    queue       text not null,
    body        text,
    attempts    bigint not null,
    due_at      @instant,
    batch_key   text,
    scope       text,
    job_id      text,
    platform    text,
    sent_at     @instant,
    warnings    @json,
    received_at @instant not null default @now,
    updated_at  @instant not null default @now
);
create index posts_events_by_state on posts_events (state, due_at);
create index posts_events_by_batch on posts_events (batch_key);

create table posts_batches (
    id             @id,
    batch_key      text not null unique,
    event_key      text not null,
    format         text not null,
    state          text not null,
    scope          text not null,
    project_id     text,
    project_method text not null,
    job_id         text,
    platform       text,
    task_type      text,
    keyword        text,
    batch_index    bigint,
    total_batches  bigint,
    content_count  bigint,
    items_count    bigint not null,
    success_count  bigint not null default 0,
    error_count    bigint not null default 0,
    failed_count   bigint not null default 0,
    shadow         smallint not null default 0,
    warnings       @json,
    sent_at        @instant,
    received_at    @instant not null default @now,
    finished_at    @instant
);
create index posts_batches_by_scope on posts_batches (scope, id);
create index posts_batches_by_job on posts_batches (job_id);
create index posts_batches_finished on posts_batches (finished_at);

create table posts_batch_items (
    batch_id     bigint not null,
    position     bigint not null,
    content_id   text,
    status       text not null,
    sentiment    text,
    score        @real,
    impact_score @real,
    error        text,
    primary key (batch_id, position)
) @clustered;

create table posts_analytics (
    scope                   text not null,
    platform                text not null,
    content_id              text not null,
    project_id              text,
    job_id                  text,
    batch_id                bigint not null,
    batch_index             bigint,
    task_type               text,
    keyword_source          text,
    pipeline_version        text,
    crawled_at              @instant,
    version_at              @instant not null,
    fetch_status            text not null,
    fetch_error             text,
    error_code              text,
    error_details           @json,
    permalink               text,
    author_id               text,
    author_name             text,
    text                    text,
    language                text,
    published_at            @instant,
    day                     text not null,
    analyzed_at             @instant not null,
    overall_sentiment       text,
    sentiment_score         @real,
    sentiment_confidence    @real,
    sentiment_probabilities @json,
    not_analysed            text,
    primary_intent          text not null,
    intent_confidence       @real not null,
    impact_score            @real,
    risk_level              text,
    is_viral                smallint,
    is_kol                  smallint,
    impact_breakdown        @json,
    aspects_breakdown       @json,
    keywords                @json,
    view_count              bigint,
    like_count              bigint,
    comment_count           bigint,
    share_count             bigint,
    save_count              bigint,
    follower_count          bigint,
    processing_time_ms      @real not null,
    model_version           text not null,
    primary key (scope, platform, content_id),
    check (fetch_status in ('success', 'error')),
    check (overall_sentiment is not null or not_analysed is not null)
) @clustered;
create index posts_analytics_by_job on posts_analytics (job_id);
create index posts_analytics_by_status on posts_analytics (fetch_status);
create index posts_analytics_by_task on posts_analytics (task_type);
create index posts_analytics_by_impact on posts_analytics (scope, impact_score);

create table posts_crawl_errors (
    id             @id,
    content_id     text not null,
    scope          text not null,
    project_id     text,
    job_id         text not null,
    platform       text not null,
    batch_key      text not null,
    error_code     text not null,
    error_category text not null,
    retry_class    text not null,
    error_message  text,
    error_details  @json,
    permalink      text,
    day            text not null,
    created_at     @instant not null default @now,
    unique (job_id, content_id, error_code, batch_key)
);
create index posts_crawl_errors_by_project on posts_crawl_errors (project_id);
create index posts_crawl_errors_by_code on posts_crawl_errors (error_code);
create index posts_crawl_errors_by_time on posts_crawl_errors (created_at);
create index posts_crawl_errors_by_day on posts_crawl_errors (scope, day);

create table posts_days (
    scope      text not null,
    day        text not null,
    platform   text not null,
    sentiment  text not null,
    intent     text not null,
    risk       text not null,
    posts      bigint not null,
    viral      bigint not null,
    impact_sum @real not null,
    primary key (scope, day, platform, sentiment, intent, risk)
) @clustered;

create table posts_error_days (
    scope    text not null,
    day      text not null,
    platform text not null,
    code     text not null,
    category text not null,
    errors   bigint not null,
    primary key (scope, day, platform, code, category)
) @clustered;

create table posts_day_changes (
    id         @id,
    scope      text not null,
    day        text not null,
    platform   text not null,
    sentiment  text not null,
    intent     text not null,
    risk       text not null,
    posts      bigint not null,
    viral      bigint not null,
    impact_sum @real not null
);

create table posts_error_day_changes (
    id       @id,
    scope    text not null,
    day      text not null,
    platform text not null,
    code     text not null,
    category text not null,
    errors   bigint not null
);

create table posts_differences (
    id         @id,
    scope      text not null,
    platform   text not null,
    content_id text not null,
    field      text not null,
    stored     text,
    shadow     text,
    batch_id   bigint not null,
    at         @instant not null default @now,
    unique (batch_id, content_id, field)
);
