// Command writ plans, runs and inspects flows of sandboxed guest modules.
//
// It wires the packages of this repository together and shows what they say. It
// decides nothing itself: what may run is the policies' and the engine's answer,
// what a run came to is what its record says. Data goes to stdout, everything
// else to stderr; text that guests made is escaped before a person sees it.
package main

import (
	"context"
	"crypto/rand"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

// run is main without the exit, so that what is deferred happens.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for an orderly end; from then on the system's way
	// applies, so that a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	a := &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv, now: time.Now, rand: rand.Reader,
	}
	return a.main(ctx, os.Args[1:])
}
