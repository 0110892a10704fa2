package codecache

import (
	"bytes"
	"os"
	"runtime"
)

// Machine returns a text that differs where native code compiled here may not
// run: operating system, architecture and, where the system tells, what the
// processor can do.
func Machine() string {
	text := runtime.GOOS + "/" + runtime.GOARCH
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return text
	}
	for line := range bytes.Lines(info) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		// As x86 and as Arm call it.
		if name := string(bytes.TrimSpace(name)); ok && (name == "flags" || name == "Features") {
			return text + " " + string(bytes.TrimSpace(value))
		}
	}
	return text
}
