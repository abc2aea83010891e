-- What a picture shows, for who cannot see it.
ALTER TABLE pictures ADD COLUMN alt TEXT NOT NULL DEFAULT '';

-- What a user's pictures take, without those that are deleted; kept by the triggers below, so no change forgets it.
CREATE TABLE storage (
    user BLOB NOT NULL PRIMARY KEY,
    pictures INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO storage (user, pictures, bytes)
    SELECT owner, count(*), sum(bytes) FROM pictures WHERE NOT removed GROUP BY owner;

CREATE TRIGGER picture_added AFTER INSERT ON pictures BEGIN
    INSERT INTO storage (user, pictures, bytes) VALUES (NEW.owner, 1, NEW.bytes)
        ON CONFLICT (user) DO UPDATE SET pictures = pictures + 1, bytes = bytes + NEW.bytes;
END;

CREATE TRIGGER picture_removed AFTER UPDATE OF removed ON pictures WHEN NEW.removed AND NOT OLD.removed BEGIN
    UPDATE storage SET pictures = pictures - 1, bytes = bytes - OLD.bytes WHERE user = OLD.owner;
END;
