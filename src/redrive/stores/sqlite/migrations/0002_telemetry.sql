-- Which metrics there are. `id` stands for the other columns in the tables below.
CREATE TABLE metric_series (
    account    TEXT NOT NULL,
    region     TEXT NOT NULL,
    namespace  TEXT NOT NULL,
    name       TEXT NOT NULL,
    dimensions TEXT NOT NULL,  -- JSON: a list of names and values, in order of the names
    id         INTEGER NOT NULL,
    active_at  INTEGER NOT NULL,  -- to ten minutes
    PRIMARY KEY (account, region, namespace, name, dimensions)
) STRICT, WITHOUT ROWID;

CREATE TABLE metric_points (
    series_id INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    unit      TEXT NOT NULL,
    samples   REAL NOT NULL,
    total     REAL NOT NULL,
    least     REAL NOT NULL,
    greatest  REAL NOT NULL,
    PRIMARY KEY (series_id, at, unit)
) STRICT, WITHOUT ROWID;
CREATE INDEX metric_points_at ON metric_points (at);

-- For percentiles: rounded values, where a sender gave values at all.
CREATE TABLE metric_values (
    series_id INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    unit      TEXT NOT NULL,
    value     REAL NOT NULL,
    count     REAL NOT NULL,
    PRIMARY KEY (series_id, at, unit, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX metric_values_at ON metric_values (at);

CREATE TABLE log_events (
    group_id    INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    stream_id   INTEGER NOT NULL,
    ingested_at INTEGER NOT NULL,
    message     TEXT NOT NULL,
    PRIMARY KEY (group_id, at, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX log_events_streams ON log_events (group_id, stream_id, at, seq);

-- The groups that have events, and what they weigh.
CREATE TABLE log_sizes (
    group_id INTEGER PRIMARY KEY,
    bytes    INTEGER NOT NULL
) STRICT;
