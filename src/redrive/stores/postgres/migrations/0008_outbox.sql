-- On Citus, deliveries of publications to several nodes until they are in their queues: a table of the coordinator alone.
CREATE TABLE outbox (
    seq              bigint PRIMARY KEY,
    queue_id         bigint NOT NULL,
    available_at     bigint NOT NULL,
    enqueued_at      bigint NOT NULL,
    message_id       bytea NOT NULL,
    deduplication_id text COLLATE "C",
    headers          bytea,
    body             text NOT NULL
);

-- It fills and empties all the time: see `deliveries`.
ALTER TABLE outbox SET (
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_cost_delay = 0
);
