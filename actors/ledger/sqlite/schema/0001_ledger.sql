-- +goose Up

-- Instants are microseconds since 1970-01-01 UTC: datetime(slot / 1000000, 'unixepoch'). NULL: none.
-- States: 1 pending, 2 claimed, 3 done, 4 skipped, 5 dead.

CREATE TABLE qj_claims (
    key           TEXT    NOT NULL PRIMARY KEY, -- namespace/trigger/incarnation.version.epoch/kind/what
    state         INTEGER NOT NULL,
    session       INTEGER NOT NULL,             -- that holds the claim; 0: none
    lease         INTEGER NOT NULL,             -- nanoseconds since that session began
    fence         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    interruptions INTEGER NOT NULL,
    slot          INTEGER NOT NULL,
    due           INTEGER,
    fired_at      INTEGER,
    ended_at      INTEGER,
    job           TEXT    NOT NULL,
    payload       BLOB,
    fingerprint   INTEGER NOT NULL,
    result        BLOB,
    reason        TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- The history in its order. Slots of now are neighbours, so this costs few pages a transaction.
CREATE INDEX qj_claims_slot ON qj_claims (slot, key);

-- What recovery asks for: small, however long the history is.
CREATE INDEX qj_claims_unfinished ON qj_claims (key) WHERE ended_at IS NULL;

CREATE TABLE qj_rows (
    kind      TEXT    NOT NULL,
    namespace TEXT    NOT NULL,
    id        TEXT    NOT NULL,
    owner     TEXT    NOT NULL,
    revision  INTEGER NOT NULL,
    due       INTEGER,
    blob      BLOB,
    PRIMARY KEY (kind, namespace, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX qj_rows_due ON qj_rows (kind, namespace, due, id);

CREATE TABLE qj_ranges (
    name        TEXT    NOT NULL PRIMARY KEY, -- namespace/trigger/incarnation.version.epoch/first/last
    namespace   TEXT    NOT NULL,
    trigger     TEXT    NOT NULL,
    incarnation INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,
    first       INTEGER NOT NULL,
    last        INTEGER NOT NULL,
    slots       INTEGER NOT NULL,
    reason      TEXT    NOT NULL,
    decided_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX qj_ranges_first ON qj_ranges (first, name);

CREATE TABLE qj_sessions (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    opened_at INTEGER NOT NULL,
    pid       INTEGER NOT NULL,
    host      TEXT    NOT NULL,
    program   TEXT    NOT NULL
) STRICT;

PRAGMA application_id = 1363820867;
PRAGMA user_version = 1;
