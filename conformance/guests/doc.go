// Package guests holds the tests that programs as people write them, in Go, C and
// Rust with their own runtimes and standard libraries, leave the same on every
// engine: output, fuel, every host call, and the last byte of memory.
//
// It exports nothing. The programs are in testdata; each does what could differ
// between two machines and answers with all it saw.
package guests
