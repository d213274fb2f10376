// Command quarterjack is the program under the name that users install: node alone would shadow Node.js.
package main

import (
	"os"

	"github.com/quarterjack/quarterjack/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
