// Command node is the program quarterjack, for those who write no Go.
package main

import (
	"os"

	"github.com/quarterjack/quarterjack/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
