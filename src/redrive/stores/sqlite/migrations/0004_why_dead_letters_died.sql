-- Why a dead letter died: "server_error 503", "exhausted"; NULL of what is none, and of what died before this step.
-- Behind the body, which is where a column is added: it is written when a dead letter enters its queue, and never changed.
ALTER TABLE deliveries ADD COLUMN failure TEXT;

-- The causes of a queue's dead letters, and those of each cause in order of arrival.
CREATE INDEX deliveries_failures ON deliveries (queue_id, origin, failure) WHERE failure IS NOT NULL;
