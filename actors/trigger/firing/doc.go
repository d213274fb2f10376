// Package firing is the kernel of a trigger: what is due, what was missed and what happens to it, and when to look
// again.
//
// A [Machine] holds one trigger. Its shell feeds it with what happened (a completion, a request by hand, a pause) and
// asks it to [Machine.Step]; the answer is a list of effects, which the shell performs in the order in which they
// stand. The machine is pure: time is an argument, nothing here reads a clock, sleeps or sends.
//
// The rules for missed slots are those of Quartz 2.3.2's SimpleTrigger (updateAfterMisfire), checked against what the
// real one did.
package firing
