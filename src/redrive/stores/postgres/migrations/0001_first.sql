-- Places of arrival. No cache: a session that hands out numbers reserved earlier would let a later message of a
-- group come before an earlier one that another session took in.
CREATE SEQUENCE delivery_seq CACHE 1;

-- Numbers of queues and topics.
CREATE SEQUENCE resource_ids CACHE 1;

-- Queues' attributes, tasks, access keys …: small documents, changed by version. Keys are listed in byte order.
CREATE TABLE resources (
    kind     text COLLATE "C" NOT NULL,
    key      text COLLATE "C" NOT NULL,
    version  bigint NOT NULL,
    document json NOT NULL,
    PRIMARY KEY (kind, key)
);

CREATE TABLE deliveries (
    queue_id         bigint NOT NULL,
    seq              bigint NOT NULL,
    available_at     bigint NOT NULL,
    enqueued_at      bigint NOT NULL,
    sent_at          bigint NOT NULL,
    first_claimed_at bigint,
    token            bigint,
    origin           bigint,
    attempts         integer NOT NULL,
    place            smallint NOT NULL,  -- 0 behind its group's turn, 1 in line, 2 in line for its group
    message_id       bytea NOT NULL,
    group_id         text COLLATE "C",
    deduplication_id text COLLATE "C",
    headers          bytea,
    body             text NOT NULL,
    PRIMARY KEY (queue_id, seq)
);

-- The line: all that a claim ever looks at.
CREATE INDEX deliveries_line ON deliveries (queue_id, available_at, seq) WHERE place > 0;

-- Who is next in a group, and whether the group has a turn already.
CREATE INDEX deliveries_groups ON deliveries (queue_id, group_id, place, seq) WHERE group_id IS NOT NULL;

-- Claimed together with their group's oldest and behind it: in flight, but not in the line.
CREATE INDEX deliveries_claimed_behind ON deliveries (queue_id, available_at) WHERE place = 0 AND token IS NOT NULL;

CREATE TABLE deduplication (
    queue_id   bigint NOT NULL,
    key        text COLLATE "C" NOT NULL,
    message_id bytea NOT NULL,
    seq        bigint NOT NULL,
    since      bigint NOT NULL,
    until      bigint NOT NULL,
    PRIMARY KEY (queue_id, key)
);
CREATE INDEX deduplication_until ON deduplication (queue_id, until);

-- Claims whose answer may have been lost: the same attempt id gets the same claim again.
CREATE TABLE claim_attempts (
    queue_id     bigint NOT NULL,
    attempt_id   text COLLATE "C" NOT NULL,
    token        bigint NOT NULL,
    available_at bigint NOT NULL,
    seqs         bigint[] NOT NULL,
    until        bigint NOT NULL,
    PRIMARY KEY (queue_id, attempt_id)
);
CREATE INDEX claim_attempts_until ON claim_attempts (queue_id, until);

-- When the next delivery of a throttled subscription may be claimed, in microseconds: one row for all nodes.
CREATE TABLE paces (
    queue_id bigint PRIMARY KEY,
    next_us  bigint NOT NULL
);

-- What came of the attempts of deliveries that are not delivered (yet): the first 10 and the last 90 of each.
CREATE TABLE attempts (
    queue_id    bigint NOT NULL,
    message_id  bytea NOT NULL,
    number      integer NOT NULL,
    at          bigint NOT NULL,
    duration_ms bigint NOT NULL,
    reason      text NOT NULL,
    status      integer NOT NULL,
    response    text NOT NULL,
    PRIMARY KEY (queue_id, message_id, number)
);
CREATE INDEX attempts_at ON attempts (queue_id, at);

-- Every claim and every deletion leaves a dead row where the next claim looks first: clean up after 10,000 of them
-- and a hundredth of the table, not after a fifth of it, and without pauses.
ALTER TABLE deliveries SET (
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_cost_delay = 0
);
