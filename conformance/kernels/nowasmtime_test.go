//go:build !cgo || writ_nowasmtime

package kernels_test

func waysOfWasmtime() []way { return nil }
