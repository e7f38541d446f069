-- The queries of `treadle doctor`, by name, as in queries.sql. They write nothing and migrate nothing.

-- name: is_ours
SELECT to_regclass('treadle_schema') IS NOT NULL;

-- name: settings
SELECT name, setting FROM pg_settings WHERE name IN ('server_version', 'server_version_num', 'synchronous_commit',
    'fsync', 'full_page_writes', 'max_connections', 'superuser_reserved_connections', 'autovacuum',
    'synchronous_standby_names');

-- name: standbys
SELECT count(*) FROM pg_stat_replication;

-- name: schema_version
SELECT version FROM treadle_schema;

-- Tables with the names of ours: they are another program's if ours were never made.
-- name: namesakes
SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v')
AND relname = ANY ($1) ORDER BY relname;

-- Every day of history is a table of its own.
-- name: may_create
SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false);

-- name: lacking
SELECT DISTINCT need FROM pg_class, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS need
WHERE relnamespace = current_schema()::regnamespace AND relname = ANY ($1) AND NOT has_table_privilege(oid, need)
ORDER BY need;

-- name: state
SELECT shards, (now() AT TIME ZONE 'UTC')::date - day AS days_behind FROM treadle_schema, calendar;

-- name: clock
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- name: connections
SELECT count(*), count(*) FILTER (WHERE application_name LIKE 'treadle%' AND datname = current_database())
FROM pg_stat_activity WHERE backend_type = 'client backend';

-- The oldest transaction of this database delays the vacuum of every table in it.
-- name: oldest_transaction
SELECT floor(extract(epoch FROM clock_timestamp() - xact_start) * 1000)::bigint AS age, pid, application_name, state
FROM pg_stat_activity
WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL
    AND backend_type = 'client backend'
ORDER BY xact_start LIMIT 1;

-- Transactions that were prepared and never ended do the same, and outlive every restart.
-- name: prepared
SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database();

-- name: dead_rows
SELECT relname, n_dead_tup, n_live_tup FROM pg_stat_user_tables
WHERE schemaname = current_schema() AND n_dead_tup > $1 AND n_dead_tup > n_live_tup ORDER BY n_dead_tup DESC LIMIT 5;

-- name: not_vacuumed
SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
AND array_to_string(reloptions, ',') ~ 'autovacuum_enabled=(false|off|0)' ORDER BY relname;

-- name: partitions
SELECT count(*) FROM pg_inherits WHERE inhparent = 'history'::regclass;

-- Leases of nodes that are no longer alive; and shards without a lease.
-- name: leases
WITH clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
), held AS (
    SELECT leases.shard, nodes.owner IS NOT NULL AS alive FROM clock, leases
    LEFT JOIN nodes ON nodes.owner = leases.owner AND nodes.until > (SELECT now FROM clock)
    WHERE leases.until > clock.now
)
SELECT count(*), count(*) FILTER (WHERE NOT alive) FROM held;

-- name: nodes
SELECT name, coordinates, greatest(behind, 0) FROM nodes
WHERE until > extract(epoch FROM clock_timestamp()) * 1000 ORDER BY name;

-- name: waiting
SELECT
    (SELECT count(*) FROM runs WHERE status IN ('created', 'queued', 'running', 'paused', 'compensating')),
    (SELECT count(*) FROM requests WHERE answer IS NULL),
    (SELECT min(at) FROM requests WHERE answer IS NULL),
    (SELECT count(*) FROM outbox WHERE parked IS NOT NULL);

-- A paused run's timers stand still and are not late.
-- name: timers_due
SELECT count(*), min(due) FROM timers JOIN runs ON runs.run = timers.run
WHERE due <= extract(epoch FROM clock_timestamp()) * 1000 AND runs.status <> 'paused';

-- name: bytes
SELECT pg_database_size(current_database());
