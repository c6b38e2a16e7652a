-- Core's tables, as they are now. schema.py explains the words with an @; docs/reference/schema.md
-- what the tables hold. What only one database has is in sqlite.sql and postgres.sql.

-- Jobs and their items --------------------------------------------------------------------------
create table jobs (
    id            @id,
    pipeline      text not null,
    name          text not null,
    state         text not null,
    owner_id      text not null,
    mode          text,
    lane          text not null,
    reference     text,
    input_key     text,
    columns       @json not null,
    options       @json not null,
    reading     @json not null default '{}',
    max_items     bigint,
    next_seq      bigint not null,
    error         text,
    created_at    @instant not null,
    started_at    @instant,
    finished_at   @instant,
    updated_at    @instant not null,
    discovered_at @instant,
    trace         text,
    ip            text,
    file_id       bigint,
    concludes     smallint not null default 0,
    standing      smallint not null default 0,
    pruned_at     @instant,
    topic         text not null default '',
    removed       text not null default '{}'
) @hot;
create index jobs_by_state on jobs (state, pipeline);
create index jobs_by_input on jobs (pipeline, input_key);
create index jobs_by_owner on jobs (owner_id, id);
create unique index jobs_standing on jobs (pipeline, owner_id, topic)
    where standing = 1 and state not in ('CANCELLED', 'DELETING');

-- Written once and never updated.
create table items (
    job_id bigint not null,
    seq    bigint not null,
    key    text,
    input  @json not null,
    primary key (job_id, seq)
) @clustered;

-- What is still to be done. Each is written three times: added, claimed, removed.
create table ranges (
    id            @id,
    job_id        bigint not null,
    lo            bigint not null,
    hi            bigint not null,
    again         smallint not null,
    available_at  @instant not null,
    token         text,
    settled       bigint not null,
    worker        text,
    expiries      smallint not null,
    lone_expiries smallint not null,
    item_bytes    bigint not null,
    waiting_for   text,
    since         @instant not null,
    owner_id      text not null,
    pipeline      text not null
) @hot;
create index ranges_to_claim on ranges (job_id, available_at, id);
create index ranges_of_job_by_since on ranges (job_id, since, id);

create table outcomes (
    job_id        bigint not null,
    seq           bigint not null,
    status        text not null,
    tries         integer not null,
    attempts      integer not null,
    misses        integer not null,
    normalized    @json,
    result        @json,
    error_code    text,
    error_message text,
    seconds       real not null,
    range_id      bigint,
    updated_at    @instant not null default @now,
    primary key (job_id, seq)
) @clustered;
create index outcomes_by_status on outcomes (job_id, status, updated_at, seq);
create index outcomes_by_range on outcomes (range_id, seq) where range_id is not null;
create index outcomes_by_code on outcomes (job_id, error_code, updated_at, seq)
    where error_code is not null;

create table attempts (
    job_id        bigint not null,
    seq           bigint not null,
    number        integer not null,
    status        text not null,
    result        @json,
    error_code    text,
    error_message text,
    seconds       real not null,
    worker        text not null,
    at            @instant not null,
    primary key (job_id, seq, number)
) @clustered;

-- A row for each change, summed on reading and folded now and then: two processes never wait for
-- each other here, and a transaction that is held open for long makes no row slow to update.
-- What a change does not count is null, and takes no space.
create table counters (
    job_id     bigint not null,
    accepted   bigint not null,
    done       bigint,
    not_found  bigint,
    skipped    bigint,
    error      bigint,
    retried    bigint,
    throttled  bigint,
    known      bigint,
    updated_at @instant not null
);
create index counters_by_job on counters (job_id);

create table keys (
    scope        text not null,
    key          text not null,
    content_hash text not null,
    job_id       bigint not null,
    seq          bigint not null,
    primary key (scope, key)
) @clustered;

-- Sources ---------------------------------------------------------------------------------------
create table streams (
    id                @id,
    pipeline          text not null,
    source            text not null,
    mode              text not null,
    job_id            bigint not null,
    state             text not null,
    generation        bigint not null,
    cursor            @json,
    fingerprint       text not null,
    token             text,
    worker            text,
    available_at      @instant not null,
    pages_count       bigint not null,
    records_count     bigint not null,
    items_count       bigint not null,
    max_items         bigint,
    expected_count    bigint,
    failures          integer not null,
    error             text,
    full_completed_at @instant,
    updated_at        @instant not null,
    actual_count      bigint,
    verified_at       @instant,
    force_full        smallint not null default 0,
    rerun_requested   smallint not null default 0,
    waiting_for       text,
    unique (pipeline, source, mode)
) @hot;
create index streams_by_job on streams (job_id);

create table stream_pages (
    stream_id     bigint not null,
    generation    bigint not null,
    cursor_hash   text not null,
    number        bigint not null,
    records_count bigint not null,
    items_count   bigint not null,
    at            @instant not null,
    primary key (stream_id, generation, cursor_hash)
) @clustered;

-- The latest slices of a stream: who read it, and how it ended.
create table stream_slices (
    id           @id,
    stream_id    bigint not null,
    generation   bigint not null,
    job_id       bigint not null,
    worker       text not null,
    started_at   @instant not null,
    ended_at     @instant,
    pages_before bigint not null,
    pages_count  bigint,
    ended        text,
    error        text
);
create index stream_slices_by_stream on stream_slices (stream_id, id);
create index stream_slices_by_job on stream_slices (job_id);

-- Limits and control ----------------------------------------------------------------------------
create table gates (
    name          text primary key,
    spacing       @real not null,
    jitter        @real not null,
    concurrency   integer not null,
    next_at       @instant not null,
    closed_until  @instant,
    reason        text,
    updated_at    @instant not null,
    requests      bigint not null default 0,
    units         @real not null default 0,
    period        @real not null default 60,
    share         @real not null default 1,
    requests_left @real not null default 0,
    units_left    @real not null default 0,
    filled_at     @instant,
    throttled_at  @instant
) @hot;

create table gate_holds (
    gate   text not null,
    worker text not null,
    slots  integer not null,
    weight integer not null default 1,
    most   integer,
    primary key (gate, worker)
) @hot;

-- What passed each gate in a minute.
create table gate_minutes (
    gate         text not null,
    minute       bigint not null,
    passed       bigint not null,
    units        @real not null,
    waits        bigint not null,
    wait_seconds @real not null,
    throttles    bigint not null,
    failures     bigint not null,
    primary key (gate, minute)
) @clustered;

-- What each job sent through each gate.
create table gate_uses (
    job_id       bigint not null,
    gate         text not null,
    passed       bigint not null,
    waits        bigint not null,
    wait_seconds @real not null,
    throttles    bigint not null,
    failures     bigint not null,
    first_at     @instant not null,
    last_at      @instant not null,
    primary key (job_id, gate)
) @clustered;

create table kill_switches (
    scope  text primary key,
    actor  text not null,
    reason text not null,
    since  @instant not null
);

create table workers (
    name               text primary key,
    host               text not null,
    pid                bigint not null,
    pipelines          @json not null,
    started_at         @instant not null,
    seen_at            @instant not null,
    stopped_at         @instant,
    machine            text not null default '',
    lost_after_seconds @real not null default 20
) @hot;

-- Which process sweeps.
create table duties (
    name     text primary key,
    holder   text not null,
    acted_at @instant not null
);

create table schedules (
    name        text primary key,
    reference   text not null,
    cron        text not null,
    zone        text not null,
    options     @json not null,
    enabled     smallint not null,
    next_at     @instant not null,
    last_at     @instant,
    last_job_id bigint,
    error       text
);

create table dead_letters (
    id         @id,
    kind       text not null,
    job_id     bigint,
    seq        bigint,
    pipeline   text not null,
    code       text not null,
    message    text not null,
    state      text not null,
    created_at @instant not null,
    acted_at   @instant,
    actor      text,
    message_id text,
    payload    @bytes,
    queue      text,
    history    @json
);
create index dead_letters_by_state on dead_letters (state, id);
create index dead_letters_by_item on dead_letters (job_id, seq);

create table decisions (
    id     @id,
    job_id bigint not null,
    worker text not null,
    what   text not null,
    was    @real not null,
    became @real not null,
    why    text not null,
    at     @instant not null
);
create index decisions_by_job on decisions (job_id, id);

-- Can only grow: triggers refuse the rest.
create table audit (
    id      @id,
    actor   text not null,
    action  text not null,
    job_id  bigint,
    subject text not null,
    detail  @json not null,
    at      @instant not null
);
create index audit_by_job on audit (job_id, id);
create index audit_by_actor on audit (actor, id);
create index audit_by_subject on audit (job_id, subject, id);

-- Rows of the audit may only go while a pruning is noted, which notes itself in the audit.
create table audit_pruning (
    before @instant not null,
    actor  text not null,
    at     @instant not null
);

-- Messages --------------------------------------------------------------------------------------
create table outbox (
    id           @id,
    message_id   text not null,
    queue        text,
    payload      @bytes not null,
    available_at @instant not null,
    failures     integer not null,
    error        text,
    created_at   @instant not null,
    exchange     text,
    routing_key  text,
    headers      text
);
create index outbox_by_due on outbox (available_at, id);

create table nudges (
    job_id     bigint primary key,
    pipeline   text not null,
    message_id text not null,
    seen_at    @instant not null
) @hot;

-- Keys of requests (with their owner) and ids of messages (with ''), each taken once.
create table taken_keys (
    owner_id    text not null,
    key         text not null,
    fingerprint text not null,
    content     text not null,
    made        bigint,
    status      integer,
    body        text,
    worker      text,
    at          @instant not null,
    primary key (owner_id, key)
);
create index taken_keys_by_at on taken_keys (at);
create index taken_keys_by_worker on taken_keys (worker)
    where worker <> '' and status is null and made is null;

-- People and files ------------------------------------------------------------------------------
create table secrets (
    name  text primary key,
    value text not null
);

create table users (
    name          text primary key,
    role          text not null,
    password_hash text,
    disabled      smallint not null,
    created_at    @instant not null,
    updated_at    @instant not null,
    deleting      smallint not null default 0
);

create table tokens (
    id           @id,
    user_name    text not null,
    name         text not null,
    hash         text not null unique,
    created_at   @instant not null,
    expires_at   @instant,
    last_used_at @instant,
    revoked_at   @instant,
    parent_id    bigint
) @hot;
create index tokens_by_user on tokens (user_name, id);

create table sessions (
    hash       text primary key,
    user_name  text not null,
    ip         text,
    created_at @instant not null,
    seen_at    @instant not null,
    expires_at @instant not null
) @hot;
create index sessions_by_user on sessions (user_name);

create table login_links (
    hash       text primary key,
    user_name  text not null,
    created_at @instant not null,
    expires_at @instant not null
);

create table login_failures (
    subject       text primary key,
    failures      integer not null,
    blocked_until @instant,
    at            @instant not null
);

create table second_factors (
    user_name  text primary key,
    secret     text not null,
    confirmed  smallint not null,
    last_step  bigint not null,
    created_at @instant not null
);

create table recovery_codes (
    user_name text not null,
    hash      text not null,
    primary key (user_name, hash)
);

create table nonces (
    scope text not null,
    nonce text not null,
    at    @instant not null,
    primary key (scope, nonce)
);
create index nonces_by_at on nonces (at);

create table flags (
    name  text primary key,
    actor text not null,
    at    @instant not null,
    value text not null default 'true'
);

create table files (
    id         @id,
    owner_id   text not null,
    name       text not null,
    kind       text not null,
    key        text not null,
    size       bigint not null,
    sha256     text not null,
    detected   @json not null,
    created_at @instant not null,
    draft      integer not null default 0
);
create index files_by_owner on files (owner_id, id);
create index files_by_key on files (key);
create index files_draft on files (created_at) where draft = 1;

create table exports (
    id          @id,
    owner_id    text not null,
    job_id      bigint not null,
    format      text not null,
    statuses    @json not null,
    with_input  smallint not null,
    state       text not null,
    partial     smallint not null,
    rows_count  bigint not null,
    size        bigint,
    notes       @json not null,
    error       text,
    worker      text,
    created_at  @instant not null,
    finished_at @instant,
    narrowed    text not null default '{}',
    key         text,
    sha256      text
) @hot;
create index exports_by_owner on exports (owner_id, id);
create index exports_by_job on exports (job_id, id);
create index exports_to_do on exports (id) where state in ('QUEUED', 'RUNNING');
create index exports_by_key on exports (key);

create table operations (
    id             @id,
    owner_id       text not null,
    kind           text not null,
    target         @json not null,
    job_ids        @json not null,
    state          text not null,
    expected_count bigint not null,
    done_count     bigint not null,
    left_count     bigint not null,
    position       @json,
    result         @json not null,
    error          text,
    worker         text,
    before         @instant not null,
    created_at     @instant not null,
    finished_at    @instant
) @hot;
create index operations_by_owner on operations (owner_id, id);
create index operations_to_do on operations (id) where state in ('QUEUED', 'RUNNING');

-- Never updated: each decision, and each revocation, is a row with the next version.
create table rulings (
    job_id  bigint not null,
    seq     bigint not null,
    version integer not null,
    kind    text not null,
    value   text not null,
    changes text not null,
    reason  text not null,
    author  text not null,
    at      @instant not null,
    primary key (job_id, seq, version)
);

-- Places that files arrive at, and the files that came.
create table adapters (
    id               @id,
    name             text not null unique,
    kind             text not null,
    address          text not null,
    pipeline         text not null,
    owner_id         text not null,
    options          @json not null,
    marker           text not null,
    settle_seconds   @real not null,
    interval_seconds @real not null,
    enabled          smallint not null,
    token            text,
    due_at           @instant not null,
    scanned_at       @instant,
    error            text,
    created_at       @instant not null
);

create table adapter_files (
    id         @id,
    adapter_id bigint not null references adapters (id),
    identity   text not null,
    name       text not null,
    size       bigint not null,
    state      text not null,
    sha256     text,
    file_id    bigint,
    job_id     bigint,
    error      text,
    seen_at    @instant not null,
    updated_at @instant not null,
    unique (adapter_id, identity)
);
create index adapter_files_by_content on adapter_files (adapter_id, sha256);
create index adapter_files_by_time on adapter_files (adapter_id, id);

-- How jobs stood over time, for the charts of the pages.
create table samples (
    job_id    bigint not null,
    bucket    bigint not null,
    accepted  bigint not null,
    finished  bigint not null,
    error     bigint not null,
    throttled bigint not null,
    primary key (job_id, bucket)
) @clustered;
create index samples_by_bucket on samples (bucket);

-- What pipelines looked up and may use again for a while.
create table cache (
    scope      text not null,
    key        text not null,
    value      text not null,
    expires_at @instant not null,
    primary key (scope, key)
);
create index cache_by_expiry on cache (expires_at);
