-- online
-- What waits for a claim, now or at a later moment. Claims of the version before came by `deliveries_line`, of claimed
-- deliveries as well; without it they would sort all of a queue.
CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_waiting ON deliveries (queue_id, available_at, seq) WHERE place > 0 AND token IS NULL;

-- afterwards
DROP INDEX CONCURRENTLY IF EXISTS deliveries_line;
DROP INDEX CONCURRENTLY IF EXISTS deliveries_claimed_behind;
