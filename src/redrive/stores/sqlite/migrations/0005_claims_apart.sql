-- What is claimed has an index of its own: a claim that ran out comes back to its place of arrival, before younger messages,
-- and the line has no more than those that nobody claimed. A claim moves an entry from one to the other, as it moved it
-- within the line before.
DROP INDEX deliveries_line;
DROP INDEX deliveries_claimed_behind;

-- What waits for a claim, now or at a later moment.
CREATE INDEX deliveries_line ON deliveries (queue_id, available_at) WHERE place > 0 AND token IS NULL;

-- What is claimed, and what was and came back; by its place, so that it is counted without the table.
CREATE INDEX deliveries_claims ON deliveries (queue_id, available_at, place) WHERE token IS NOT NULL;
