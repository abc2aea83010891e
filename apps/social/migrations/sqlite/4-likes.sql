-- Events of likes say who it is by an identifier, which tells nothing of a user who is gone.
UPDATE events SET body = json_set(body, '$.by', coalesce(
    (SELECT lower(hex(users.id)) FROM users WHERE users.name = events.body ->> 'by'), ''))
WHERE body ->> 'by' IS NOT NULL
    AND topic IN (SELECT id FROM topics WHERE name LIKE '/picture/%/likes');
