-- The address that a user asked for last: only links that were mailed to it are good.
ALTER TABLE users ADD COLUMN wanted_email TEXT;
