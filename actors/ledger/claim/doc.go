// Package claim is the kernel of the ledger: the states that the claim of one key goes through, and the decision
// which of them a request may bring about.
//
// It is pure: time is an argument, nothing here reads a clock, does I/O or starts a goroutine. A [Store] keeps the
// records; it reads them through a [View], lets [Plan] decide, and writes what the plan says, in one transaction.
// All stores therefore have the same meaning, and a store is only as clever as its SQL.
//
//	(absent)           --decide-->   PENDING{attempt 0, due}
//	(absent) | PENDING --claim-->    CLAIMED{session, fence+1, lease, attempt+1}
//	(absent) | PENDING --skip-->     SKIPPED{reason}                             terminal
//	CLAIMED            --complete--> DONE{result}                                terminal
//	CLAIMED            --fail-->     PENDING{due, reason}, or DEAD{reason} where the failure is final
//	CLAIMED            --release-->  PENDING (fence+1; no attempt is spent, an interruption is counted)
//	CLAIMED            --extend-->   CLAIMED (a later lease)
//	CLAIMED, lease over: as PENDING for claim and skip (a claim is then a take-over: fence+1, the attempt stays, an
//	interruption is counted); its holder may still complete until somebody else has claimed
//
// Instants are kept to the microsecond ([Resolution]), in UTC, within the years 1 to 9999: what every store can hold.
//
// Fences only grow. Whoever presents an older one is refused with [ErrFenced].
package claim
