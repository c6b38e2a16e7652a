-- Second factors and recovery codes; numbers that are used once.

-- name: second_factor_on
select 1
from   second_factors
where  user_name = :user_name and confirmed = 1;

-- name: second_factor
select secret, confirmed
from   second_factors
where  user_name = :user_name;

-- name: begin_second_factor
-- One that was never confirmed is replaced.
insert into second_factors (user_name, secret, confirmed, last_step, created_at)
values (:user_name, :secret, 0, 0, @now)
on conflict (user_name) do update
set    secret = excluded.secret, created_at = excluded.created_at
where  second_factors.confirmed = 0
returning user_name;

-- name: confirm_second_factor
update second_factors
set    confirmed = 1, last_step = :step
where  user_name = :user_name and confirmed = 0
returning user_name;

-- name: use_code
-- A code is valid once, and none that is older than the last one.
update second_factors
set    last_step = :step
where  user_name = :user_name and confirmed = 1 and last_step < :step
returning user_name;

-- name: remove_second_factor
delete from second_factors
where  user_name = :user_name
returning user_name;

-- name: add_recovery_code
insert into recovery_codes (user_name, hash)
values (:user_name, :hash);

-- name: use_recovery_code
delete from recovery_codes
where  user_name = :user_name and hash = :hash
       and exists (select 1 from second_factors s
                   where s.user_name = :user_name and s.confirmed = 1)
returning user_name;

-- name: remove_recovery_codes
delete from recovery_codes
where  user_name = :user_name;

-- name: use_nonce
insert into nonces (scope, nonce, at)
values (:scope, :nonce, @now)
on conflict (scope, nonce) do nothing
returning nonce;

-- name: forget_nonces
delete from nonces
where  at <= @after(-86400);
