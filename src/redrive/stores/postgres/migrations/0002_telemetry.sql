-- Which metrics there are. `id` stands for the other columns in the tables below.
CREATE TABLE metric_series (
    account    text COLLATE "C" NOT NULL,
    region     text COLLATE "C" NOT NULL,
    namespace  text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    dimensions text COLLATE "C" NOT NULL,  -- JSON: a list of names and values, in order of the names
    id         bigint NOT NULL,
    active_at  bigint NOT NULL,  -- to ten minutes
    PRIMARY KEY (account, region, namespace, name, dimensions)
);

CREATE TABLE metric_points (
    series_id bigint NOT NULL,
    at        bigint NOT NULL,
    unit      text COLLATE "C" NOT NULL,
    samples   double precision NOT NULL,
    total     double precision NOT NULL,
    least     double precision NOT NULL,
    greatest  double precision NOT NULL,
    PRIMARY KEY (series_id, at, unit)
);
CREATE INDEX metric_points_at ON metric_points (at);

-- For percentiles: rounded values, where a sender gave values at all.
CREATE TABLE metric_values (
    series_id bigint NOT NULL,
    at        bigint NOT NULL,
    unit      text COLLATE "C" NOT NULL,
    value     double precision NOT NULL,
    count     double precision NOT NULL,
    PRIMARY KEY (series_id, at, unit, value)
);
CREATE INDEX metric_values_at ON metric_values (at);

-- No cache, like `delivery_seq`: of one moment's events a later one must not come before an earlier one.
CREATE SEQUENCE log_seq CACHE 1;

CREATE TABLE log_events (
    group_id    bigint NOT NULL,
    at          bigint NOT NULL,
    seq         bigint NOT NULL,
    stream_id   bigint NOT NULL,
    ingested_at bigint NOT NULL,
    message     text NOT NULL,
    PRIMARY KEY (group_id, at, seq)
);
CREATE INDEX log_events_streams ON log_events (group_id, stream_id, at, seq);

-- The groups that have events, and what they weigh.
CREATE TABLE log_sizes (
    group_id bigint PRIMARY KEY,
    bytes    bigint NOT NULL
);
