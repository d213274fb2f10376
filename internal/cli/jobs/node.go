package jobs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	qj "github.com/quarterjack/quarterjack"
)

// nodeVar marks every process that an exec job of a node starts.
const nodeVar = "QJ_NODE"

// IDFile is where the id of a node is kept, beside its store.
const IDFile = "node.id"

// idBytes is how long an id is before it is written in hexadecimal.
const idBytes = 16

// killWait bounds how long Stop waits for programs that it has killed: one that the kernel holds does not die.
const killWait = 5 * time.Second

// errStopping refuses a program of a node that stops.
var errStopping = errors.New("not started: the node stops")

// Node is what the exec jobs of one node share: its id, and the programs that run. The zero value has no id and may be
// used. It is safe for concurrent use.
type Node struct {
	// gate is held shared while a program is started, so that Kill misses none.
	gate    sync.RWMutex
	stopped bool

	mu   sync.Mutex // id, live and what its groups hold
	id   string
	live map[*group]struct{}
}

// LoadID gives the random id that is kept in a store's directory, and makes it where there is none, with mode 0600. It
// is for whoever holds the store's lock. A file that holds anything else is qj.ErrCorrupt.
//
// Whoever copies a store to use both leaves the file out: nodes of one id take each other's programs for their own.
func LoadID(dir string) (string, error) {
	path := filepath.Join(dir, IDFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeID(dir, path)
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSuffix(string(b), "\n")
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != idBytes {
		return "", fmt.Errorf("%w: %s: want %d hexadecimal digits; remove it when no program of an earlier process runs",
			qj.ErrCorrupt, path, 2*idBytes)
	}
	return id, nil
}

// makeID writes the file under another name first: after a crash it is whole or not there.
func makeID(dir, path string) (id string, err error) {
	raw := make([]byte, idBytes)
	_, _ = rand.Read(raw) // it never fails
	id = hex.EncodeToString(raw)
	f, err := os.CreateTemp(dir, IDFile+".*") // of mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(id + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return id, nil
}

// SetID gives the id that programs started from now on carry as QJ_NODE, by which SweepOrphans knows them.
func (n *Node) SetID(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.id = id
}

// ID is what SetID gave; empty before.
func (n *Node) ID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

// Stop lets no program start any more and returns when none runs, or soon after: those that still run, whose contexts
// have ended, have the longest of their graces, and are killed then. It returns how many were.
func (n *Node) Stop() (killed int) {
	n.shut()
	ctx, cancel := context.WithTimeout(context.Background(), n.longestGrace())
	defer cancel()
	if n.await(ctx) {
		return 0
	}
	killed = n.Kill()
	ctx, cancel = context.WithTimeout(context.Background(), killWait)
	defer cancel()
	n.await(ctx)
	return killed
}

// Kill sends SIGKILL to every group that runs, at once and without waiting, and lets none start any more. It returns
// how many there were.
func (n *Node) Kill() (killed int) {
	n.shut()
	n.mu.Lock()
	defer n.mu.Unlock()
	for g := range n.live {
		if !g.reaped { // else it has had its SIGKILL, and the number may be another's
			killGroup(g.pid)
			killed++
		}
	}
	return killed
}

func (n *Node) shut() {
	n.gate.Lock()
	defer n.gate.Unlock()
	n.stopped = true
}

func (n *Node) longestGrace() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	var longest time.Duration
	for g := range n.live {
		longest = max(longest, g.grace)
	}
	return longest
}

// await returns true when no program runs, and false when ctx ends first.
func (n *Node) await(ctx context.Context) bool {
	n.mu.Lock()
	var gone []chan struct{}
	for g := range n.live {
		gone = append(gone, g.gone)
	}
	n.mu.Unlock()
	for _, g := range gone {
		select {
		case <-g:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// group is a program that runs, with all that is in its process group.
type group struct {
	node   *Node
	pid    int // of the leader, and of the group
	grace  time.Duration
	gone   chan struct{} // closed when no member runs
	reaped bool          // the leader's number is free
}

// begin starts a program as start says, unless the node stops.
func (n *Node) begin(grace time.Duration, start func() (pid int, err error)) (*group, error) {
	n.gate.RLock()
	defer n.gate.RUnlock()
	if n.stopped {
		return nil, errStopping
	}
	pid, err := start()
	if err != nil {
		return nil, err
	}
	g := &group{node: n, pid: pid, grace: grace, gone: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.live == nil {
		n.live = map[*group]struct{}{}
	}
	n.live[g] = struct{}{}
	return g, nil
}

// reap is called before the leader is reaped.
func (g *group) reap() {
	g.node.mu.Lock()
	defer g.node.mu.Unlock()
	g.reaped = true
}

// end is called when no member runs.
func (g *group) end() {
	g.node.mu.Lock()
	defer g.node.mu.Unlock()
	delete(g.node.live, g)
	close(g.gone)
}
