// Package deptest proves the arrows of the house: which package may import what.
package deptest

import "testing"

// Deps fails t for each import of pkg that begins with a forbidden prefix.
func Deps(t *testing.T, pkg string, forbidden map[string]string) { panic("deptest: coming") }
