-- The content of an encrypted message, as bytes; the body is a mark then. NULL of all others, and of those that an older
-- version encrypted, or this one beside it: their bodies have it in base 64.
ALTER TABLE deliveries ADD COLUMN sealed bytea;
ALTER TABLE outbox ADD COLUMN sealed bytea;
