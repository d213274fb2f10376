package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
)

// nodeVar marks every process that an exec job of a node starts.
const nodeVar = "QJ_NODE"

// NodeID names the node that owns the store at the given path: the same text for every way to write the path, also
// before the store is there. Exec jobs hand it to their programs as QJ_NODE, by which SweepOrphans knows them.
func NodeID(store string) (string, error) {
	path, err := filepath.Abs(store)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(realPath(path)))
	return hex.EncodeToString(sum[:8]), nil
}

// realPath resolves the symbolic links in as much of an absolute path as exists.
func realPath(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(realPath(dir), filepath.Base(path))
}
