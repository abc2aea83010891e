-- Identifiers are blobs of 16 bytes that sort by time, points in time are microseconds since 1970.

-- By this other programs' databases are known.
PRAGMA application_id = 1936679785;

CREATE TABLE users (
    id BLOB NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    display TEXT NOT NULL,
    email TEXT NOT NULL,
    about TEXT NOT NULL,
    password TEXT NOT NULL,
    webhook TEXT,
    digest INTEGER NOT NULL,
    bell_seen INTEGER NOT NULL,
    joined_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    token_hash TEXT NOT NULL PRIMARY KEY,
    user BLOB NOT NULL,
    csrf TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE keys (
    id BLOB NOT NULL PRIMARY KEY,
    user BLOB NOT NULL,
    name TEXT NOT NULL,
    secret BLOB NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_user ON keys (user, id);

CREATE TABLE nonces (
    key BLOB NOT NULL,
    nonce TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (key, nonce)
) STRICT, WITHOUT ROWID;
CREATE INDEX nonces_by_end ON nonces (expires_at);

CREATE TABLE pushes (
    endpoint TEXT NOT NULL PRIMARY KEY,
    user BLOB NOT NULL,
    p256dh TEXT NOT NULL,
    auth TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX pushes_by_user ON pushes (user);

CREATE TABLE albums (
    id BLOB NOT NULL PRIMARY KEY,
    owner BLOB NOT NULL,
    owner_name TEXT NOT NULL,
    title TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX albums_by_owner ON albums (owner, id);

-- `removed` stands in no index, so that an album's pictures are hidden without touching any.
CREATE TABLE pictures (
    id BLOB NOT NULL PRIMARY KEY,
    album BLOB NOT NULL,
    owner BLOB NOT NULL,
    owner_name TEXT NOT NULL,
    caption TEXT NOT NULL,
    media TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    removed INTEGER NOT NULL DEFAULT FALSE
) STRICT, WITHOUT ROWID;
CREATE INDEX pictures_by_album ON pictures (album, id);
CREATE INDEX pictures_by_owner ON pictures (owner, id);

CREATE TABLE likes (
    picture BLOB NOT NULL,
    user BLOB NOT NULL,
    PRIMARY KEY (picture, user)
) STRICT, WITHOUT ROWID;

CREATE TABLE comments (
    id BLOB NOT NULL PRIMARY KEY,
    picture BLOB NOT NULL,
    author BLOB NOT NULL,
    author_name TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX comments_by_picture ON comments (picture, id);

-- The ends of the logs. Events up to the number `pruned` are gone.
CREATE TABLE topics (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    seq INTEGER NOT NULL DEFAULT 0,
    total INTEGER NOT NULL DEFAULT 0,
    pruned INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE events (
    topic INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    key TEXT NOT NULL,
    total INTEGER NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (topic, seq),
    UNIQUE (topic, key)
) STRICT, WITHOUT ROWID;

-- A task without `settled_at` waits, or is claimed and waits for its lease to end.
CREATE TABLE tasks (
    key TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    due INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    added_at INTEGER NOT NULL,
    error TEXT,
    settled_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_due ON tasks (kind, due) WHERE settled_at IS NULL;
CREATE INDEX tasks_by_end ON tasks (settled_at) WHERE settled_at IS NOT NULL;
