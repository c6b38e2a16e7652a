-- The high tide of each harbour.
create table tides_heights (
    harbour text primary key,
    metres  @real not null
);
