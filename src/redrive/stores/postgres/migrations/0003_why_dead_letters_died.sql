-- online
-- Why a dead letter died: "server_error 503", "exhausted"; NULL of what is none, and of what died before this step.
ALTER TABLE deliveries ADD COLUMN IF NOT EXISTS failure text COLLATE "C";

-- The causes of a queue's dead letters, and those of each cause in order of arrival.
CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_failures ON deliveries (queue_id, origin, failure, seq) WHERE failure IS NOT NULL;
