-- What a trigger calls where evidence would be changed.
create or replace function regulations_refuse_1() returns trigger language plpgsql
set search_path from current as $$
begin
    raise exception 'evidence is never changed or deleted';
end
$$;
