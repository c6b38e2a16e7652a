-- The secret that cookies and cursors are signed with.

-- name: add_secret
-- The first process creates it; all processes read the same one afterwards.
insert into secrets (name, value)
values (:name, :value)
on conflict (name) do nothing;

-- name: secret
select value
from   secrets
where  name = :name;
