package jobs

import (
	"os"
	"strconv"
	"strings"
)

// process is what /proc says of a process.
type process struct {
	parent, group int
	start         uint64 // in clock ticks since the system's boot: with the pid it names a process for good
	dead          bool   // it has exited and only waits to be reaped
}

// pids lists the processes that there are.
func pids() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all, nil
}

// readProcess looks at one process; false if it is no more.
func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(string(b))
}

// parseStat reads a line of /proc/PID/stat. The second field, the program's name, may hold blanks and parentheses.
func parseStat(line string) (process, bool) {
	const (
		state, parent, group, start = 0, 1, 2, 19 // counted from the field after the name
	)
	f := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	if len(f) <= start {
		return process{}, false
	}
	var p process
	var errs [3]error
	p.parent, errs[0] = strconv.Atoi(f[parent])
	p.group, errs[1] = strconv.Atoi(f[group])
	p.start, errs[2] = strconv.ParseUint(f[start], 10, 64)
	p.dead = f[state] == "Z" || f[state] == "X"
	return p, errs == [3]error{}
}
