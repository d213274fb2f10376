// Package trigger is the shell around the kernel firing: one actor a trigger.
//
// The actor wakes by (incarnation, generation), asks the kernel what is to be done, commits it through the ledger's
// actor, and only then starts runs and arms its next wake. It never waits: not for the ledger, which answers by
// message, and not for a handler, which runs elsewhere and whose end comes back as a message. While a commit is
// outstanding, what arrives is noted and is part of the next step, so a slow store bounds what can pile up.
//
// After a restart, and at start-up, the actor's gate stays shut until the ledger has answered its reload.
package trigger
