// Package batch is the kernel of key groups: what one key has gathered, when its batch is due, and what becomes of a
// batch that failed.
//
// It is pure: time is an argument, nothing here reads a clock, starts a goroutine or knows an actor. Whoever owns a
// [State] calls its methods one at a time and performs the effects that they return, in their order:
//
//	Idle --Add--> Gathering{deadline} --Tick, Flush, Close, or full--> Ready --Start--> Running
//	Running --Finished, nothing left--> Idle
//	Running --Finished, data left-----> Ready        (at once: there was progress)
//	Running --Finished with an error--> BackingOff{deadline} --Tick--> Ready
//	Running --Finished, attempts used-> a dead letter, then as without an error
//
// Each transition that awaits an answer (a tick, a permit, a result) raises the generation. An answer with another
// generation changes nothing and is reported as [Stale] or [Late].
package batch
