-- Rows of these tables live for minutes, or are changed again and again: each change leaves a dead row where the next look
-- comes by. So they are cleaned up by number, not by a fifth of the table, and without pauses. A pace and a document are
-- changed in place as long as their page has room.
ALTER TABLE deduplication SET (
    autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE claim_attempts SET (
    autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE attempts SET (
    autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE paces SET (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE resources SET (
    fillfactor = 80,
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE log_sizes SET (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0
);
