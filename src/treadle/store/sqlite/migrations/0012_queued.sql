-- Runs may be queued (6.7). Only the text of the CHECK changes: the content of the table stays as it is, so the schema is
-- edited in place, as SQLite documents it for such changes. Making and dropping a table tells other connections.
PRAGMA writable_schema = ON;
UPDATE sqlite_master SET sql = replace(sql, '''created'', ''running''', '''created'', ''queued'', ''running''')
WHERE type = 'table' AND name = 'runs';
PRAGMA writable_schema = RESET;
CREATE TABLE schema_has_changed (one INTEGER);
DROP TABLE schema_has_changed;
