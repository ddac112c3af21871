-- online
-- What is claimed has an index of its own: a claim that ran out comes back to its place of arrival, before younger messages,
-- and the line has no more than those that nobody claimed. A claim moves an entry from one to the other, as it moved it
-- within the line before.

-- What is claimed, and what was and came back. Every place is at least 0: it is said so that only a statement which says it
-- too can come by this index, and none that names a claim's token and has a better way, the key.
CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_claims ON deliveries (queue_id, available_at, seq) WHERE token IS NOT NULL AND place >= 0;
