// Package testdata holds the real event stream that the demo and the benchmarks run on. Its README says where it comes
// from.
package testdata

import _ "embed" // for Changes

// Changes is changes.ndjson.gz.
//
//go:embed changes.ndjson.gz
var Changes []byte
