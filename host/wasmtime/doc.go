// Package wasmtime runs prepared modules on the wasmtime engine, which compiles
// them to native code: a second engine, independent of the first, to compare
// with.
//
// It offers guests the functions of host.Functions and no others: wasmtime's own
// WASI, fuel, interruption and NaN rule are not used, as what those do is settled
// by preparation. It does not decide anything about a guest; traps are put into
// the host's words here and nowhere else, and none of wasmtime's texts leaves the
// package with them.
//
// The engine is a C library. A build without cgo, or with the tag
// writ_nowasmtime, has the same API and no engine: [Available] says which it is.
package wasmtime

// Version is the version of wasmtime-go this package is built with; a test
// compares it with go.mod.
const Version = "v39.0.1"

// Config says how an engine works.
type Config struct {
	CacheDir string // where native code is kept between processes; "" means nowhere
}

// engineName is the Name of engines.
const engineName = "wasmtime"
