-- Credentials that can be changed, and users who can go.

-- Sessions and tickets of a generation that is not the user's any more hold no more.
ALTER TABLE users ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
-- What is removed is hidden, and goes when everything that the user has made is gone.
ALTER TABLE users ADD COLUMN removed INTEGER NOT NULL DEFAULT FALSE;
UPDATE users SET email = lower(email);
CREATE INDEX users_by_email ON users (email, id);

ALTER TABLE sessions ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
CREATE INDEX sessions_by_user ON sessions (user);

-- The session by which a browser has subscribed; with it ends the subscription.
ALTER TABLE pushes ADD COLUMN session TEXT;
CREATE INDEX pushes_by_session ON pushes (session) WHERE session IS NOT NULL;

CREATE TABLE tickets (
    token_hash TEXT NOT NULL PRIMARY KEY,
    user BLOB NOT NULL,
    purpose TEXT NOT NULL,
    email TEXT NOT NULL,
    generation INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tickets_by_end ON tickets (expires_at);
CREATE INDEX tickets_by_user ON tickets (user);

CREATE INDEX likes_by_user ON likes (user, picture);
CREATE INDEX comments_by_author ON comments (author, id);
