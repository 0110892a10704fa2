//go:build !cgo || writ_nowasmtime

package prepare

func furtherEngines(testingT) map[string]func() specEngine { return nil }
