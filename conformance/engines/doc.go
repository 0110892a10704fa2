// Package engines holds the tests that every engine must agree in: random
// modules, hostile modules and the largest admissible modules are prepared once
// and run on each engine through [github.com/writrun/writ/host.Invoke], and each
// must leave the same outcome, fuel and record.
//
// It exports nothing. What it compares is what users get, the engines as package
// host offers them; it does not look into an engine, and holds no expectation
// that only one of them meets. Tests that make modules at random name the seed of
// a module that fails; WRIT_SEED=n repeats that one alone, and WRIT_LONG=1 makes
// twenty times as many.
package engines
