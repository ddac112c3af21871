-- The content of an encrypted message, as bytes; the body is a mark then. NULL of all others, and of those that an older
-- version encrypted, whose bodies have it in base 64. Last, so that a claim does not rewrite the pages it spills to.
ALTER TABLE deliveries ADD COLUMN sealed BLOB;
