-- What the whole store must remember: the sequence's reserved end.
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Queues' attributes, tasks, access keys …: small documents, changed by version.
CREATE TABLE resources (
    kind     TEXT NOT NULL,
    key      TEXT NOT NULL,
    version  INTEGER NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
    queue_id         INTEGER NOT NULL,
    seq              INTEGER NOT NULL,
    available_at     INTEGER NOT NULL,
    attempts         INTEGER NOT NULL,
    token            INTEGER,
    enqueued_at      INTEGER NOT NULL,
    sent_at          INTEGER NOT NULL,
    first_claimed_at INTEGER,
    message_id       BLOB NOT NULL,
    group_id         TEXT,
    deduplication_id TEXT,
    origin           INTEGER,
    headers          BLOB,
    place            INTEGER NOT NULL,  -- 0 behind its group's turn, 1 in line, 2 in line for its group
    body             TEXT NOT NULL,     -- last: a claim rewrites the columns before it, not the pages it spills to
    PRIMARY KEY (queue_id, seq)
) STRICT, WITHOUT ROWID;

-- The line: all that a claim ever looks at.
CREATE INDEX deliveries_line ON deliveries (queue_id, available_at, seq) WHERE place > 0;

-- Who is next in a group, and whether the group has a turn already.
CREATE INDEX deliveries_groups ON deliveries (queue_id, group_id, place, seq) WHERE group_id IS NOT NULL;

-- Claimed together with their group's oldest and behind it: in flight, but not in the line.
CREATE INDEX deliveries_claimed_behind ON deliveries (queue_id, available_at) WHERE place = 0 AND token IS NOT NULL;

CREATE TABLE deduplication (
    queue_id   INTEGER NOT NULL,
    key        TEXT NOT NULL,
    message_id BLOB NOT NULL,
    seq        INTEGER NOT NULL,
    until      INTEGER NOT NULL,
    PRIMARY KEY (queue_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX deduplication_until ON deduplication (queue_id, until);

-- Claims whose answer may have been lost: the same attempt id gets the same claim again.
CREATE TABLE claim_attempts (
    queue_id     INTEGER NOT NULL,
    attempt_id   TEXT NOT NULL,
    token        INTEGER NOT NULL,
    available_at INTEGER NOT NULL,
    seqs         TEXT NOT NULL,  -- JSON list
    until        INTEGER NOT NULL,
    PRIMARY KEY (queue_id, attempt_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX claim_attempts_until ON claim_attempts (queue_id, until);

-- When the next delivery of a throttled subscription may be claimed, in microseconds: one row for all nodes.
CREATE TABLE paces (
    queue_id INTEGER PRIMARY KEY,
    next_us  INTEGER NOT NULL
) STRICT;

-- What came of the attempts of deliveries that are not delivered (yet): the first 10 and the last 90 of each.
CREATE TABLE attempts (
    queue_id    INTEGER NOT NULL,
    message_id  BLOB NOT NULL,
    number      INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    reason      TEXT NOT NULL,
    status      INTEGER NOT NULL,
    response    TEXT NOT NULL,
    PRIMARY KEY (queue_id, message_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_at ON attempts (queue_id, at);
