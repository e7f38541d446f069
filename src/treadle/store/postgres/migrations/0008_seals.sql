-- From this version on bytes begin with a checksum (store/seals.py); those that are there stay as they are. No table
-- changes: a Treadle that does not know checksums could not read them, and refuses the database by its version.

SELECT 1;
