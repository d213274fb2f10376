// Package batch is the kernel of key groups: what one key has gathered, when its batch is due, and what becomes of a
// batch that failed.
//
// It is pure: time is an argument, nothing here reads a clock, starts a goroutine or knows an actor. Whoever owns a
// [State] calls its methods one at a time and performs the effects that they return, in their order:
//
//	Add                              Idle -> Gathering{deadline}
//	Tick, Flush, Close, or full      Gathering -> Ready
//	Start                            Ready -> Running
//	Finished, nothing was gathered   Running -> Idle
//	Finished, something was          Running -> Ready, at once: there was progress
//	Finished with an error           Running -> BackingOff{deadline}
//	Finished, attempts used up       a dead letter, and then as without an error
//	Tick                             BackingOff -> Ready
//
// Each transition that awaits an answer (a tick, a permit, a result) raises the generation. An answer with another
// generation changes nothing and is reported as [Stale] or [Late].
package batch
