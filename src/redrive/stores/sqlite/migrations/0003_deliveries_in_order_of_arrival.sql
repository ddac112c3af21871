-- In order of arrival, whatever the queue: all that arrives goes to the end of the table. By queue, as before, each queue
-- had an end of its own in the middle of the tree, and a message to four queues wrote three pages where one's worth came in.
CREATE TABLE arrived (
    seq              INTEGER PRIMARY KEY,
    queue_id         INTEGER NOT NULL,
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
    body             TEXT NOT NULL      -- last: a claim rewrites the columns before it, not the pages it spills to
) STRICT;

INSERT INTO arrived
SELECT seq, queue_id, available_at, attempts, token, enqueued_at, sent_at, first_claimed_at, message_id, group_id,
       deduplication_id, origin, headers, place, body
FROM deliveries ORDER BY seq;

DROP TABLE deliveries;
ALTER TABLE arrived RENAME TO deliveries;

-- Every index ends in the seq, which needs no naming.

-- A queue in order of arrival: to look through it, to empty it, to find what is too old.
CREATE INDEX deliveries_queue ON deliveries (queue_id);

-- The line: all that a claim ever looks at.
CREATE INDEX deliveries_line ON deliveries (queue_id, available_at) WHERE place > 0;

-- Who is next in a group, and whether the group has a turn already.
CREATE INDEX deliveries_groups ON deliveries (queue_id, group_id, place) WHERE group_id IS NOT NULL;

-- Claimed together with their group's oldest and behind it: in flight, but not in the line.
CREATE INDEX deliveries_claimed_behind ON deliveries (queue_id, available_at) WHERE place = 0 AND token IS NOT NULL;
