-- online
-- Whoever follows a group reads what was written down since, whatever moment the writers gave it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS log_events_arrival ON log_events (group_id, seq);
