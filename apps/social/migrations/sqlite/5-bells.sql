-- The bells that a user has rung, to be found when their account is deleted.
CREATE INDEX events_by_ringer ON events (body ->> 'by') WHERE body ->> 'kind' IS NOT NULL;
