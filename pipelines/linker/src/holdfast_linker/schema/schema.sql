-- Projects, their datasets, tasks and candidates, and what was looked up about entities.

create table linker_projects (
    id          @id,
    owner_id    text not null,
    name        text not null,
    provider    text not null,
    language    text not null,
    candidates  bigint not null,
    auto_accept @real not null,
    lead        @real not null,
    created_at  @instant not null,
    deleted_at  @instant
);
create unique index linker_projects_by_name on linker_projects (owner_id, name)
    where deleted_at is null;

create table linker_readers (
    project_id bigint not null,
    user_name  text not null,
    primary key (project_id, user_name)
);

create table linker_datasets (
    id         @id,
    project_id bigint not null,
    name       text not null,
    file_id    bigint,
    mapping    text not null,
    job_id     bigint,
    claimed_at @instant,
    created_at @instant not null
);
create index linker_datasets_of_project on linker_datasets (project_id);
create index linker_datasets_of_job on linker_datasets (job_id);

create table linker_tasks (
    job_id      bigint not null,
    seq         bigint not null,
    project_id  bigint,
    key         text not null,
    name        text not null,
    folded      text @bytewise not null,
    state       text not null,
    score       @real,
    item        text,
    entry       text not null,
    reason      text not null,
    reviewer    text,
    reviewed_at @instant,
    primary key (job_id, seq)
);
create index linker_tasks_to_review on linker_tasks
    (project_id, state, coalesce(score, -1) desc, job_id, seq);
create index linker_tasks_by_name on linker_tasks (project_id, folded);

create table linker_candidates (
    job_id      bigint not null,
    seq         bigint not null,
    item        text not null,
    project_id  bigint,
    position    bigint not null,
    label       text not null,
    description text not null,
    score       @real,
    fields      text not null,
    matched     text not null,
    source      text not null,
    status      text not null,
    reviewer    text,
    primary key (job_id, seq, item)
);
create index linker_candidates_by_item on linker_candidates (project_id, item);

create table linker_entities (
    space       text not null,
    id          text not null,
    label       text not null,
    description text not null,
    data        text not null,
    seen_at     @instant not null,
    primary key (space, id)
);

create table linker_entity_names (
    space  text not null,
    folded text @bytewise not null,
    id     text not null,
    primary key (space, folded, id)
);

create table linker_calls (
    id      @id,
    job_id  bigint not null,
    entries bigint not null,
    calls   bigint not null
);
create index linker_calls_of_job on linker_calls (job_id);

create table linker_tokens (
    id         @id,
    project_id bigint not null,
    hash       text not null unique,
    shown      text not null,
    created_by text not null,
    created_at @instant not null,
    expires_at @instant,
    revoked_at @instant
);
create index linker_tokens_of_project on linker_tokens (project_id);
