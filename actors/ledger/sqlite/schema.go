package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/quarterjack/quarterjack/actors/ledger/claim"
)

//go:embed schema/*.sql
var schema embed.FS

const (
	appID         = 1363820867 // "QJAC": what a file of ours says in its header
	schemaVersion = 1          // of the newest file in schema
)

// identify refuses a file that is not ours, or is from a newer version. It gives the version of its schema, 0 for a
// file without one.
func identify(ctx context.Context, db *sql.DB) (version int, err error) {
	var app int
	if err := db.QueryRowContext(ctx, "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version").Scan(&app, &version); err != nil {
		return 0, classify(err)
	}
	switch {
	case app == appID && version > schemaVersion:
		return 0, fmt.Errorf("%w: its schema has version %d, this program knows up to %d", claim.ErrNewer, version, schemaVersion)
	case app != appID && (app != 0 || version != 0):
		return 0, fmt.Errorf("%w: a SQLite file of another program (application_id %d, user_version %d)", claim.ErrCorrupt, app, version)
	}
	return version, nil
}

// quickCheck has SQLite look at every page.
func quickCheck(ctx context.Context, db *sql.DB) error {
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return classify(err)
	}
	if found != "ok" {
		return fmt.Errorf("%w: quick_check: %s", claim.ErrCorrupt, found)
	}
	return nil
}

// migrate brings the schema to the newest version. Migrations only go forward.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(schema, "schema")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithTableName("qj_migrations"), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("sqlite: schema: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return classify(fmt.Errorf("sqlite: schema: %w", err))
	}
	return nil
}

// beginSession notes who opens the file, and gives the number of the session.
func beginSession(ctx context.Context, db *sql.DB, me who) (uint64, error) {
	const keep = 1000 // sessions, for whoever wants to know who was there
	var id int64
	err := db.QueryRowContext(ctx, "INSERT INTO qj_sessions (opened_at, pid, host, program) VALUES (?, ?, ?, ?) RETURNING id",
		me.since.UnixMicro(), me.pid, me.host, me.program).Scan(&id)
	if err == nil {
		_, err = db.ExecContext(ctx, "DELETE FROM qj_sessions WHERE id <= ?", id-keep)
	}
	if err != nil {
		return 0, classify(fmt.Errorf("sqlite: session: %w", err))
	}
	return uint64(id), nil
}
