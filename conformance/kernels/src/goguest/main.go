//go:build wasip1

// Command goguest is the kernel written in Go: maps, sorting, floats, strings
// and fmt, with a garbage collector at work. It has the exports of kernel.h.
package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"sort"
	"strconv"
	"strings"
	"unsafe"
)

func main() {} // a library; main never runs

// message holds a request or a response, one at a time.
var message [4096]byte

//go:wasmexport writ_alloc
func writAlloc(size uint32) uint32 {
	if size > uint32(len(message)) {
		return 0
	}
	return uint32(uintptr(unsafe.Pointer(&message)))
}

//go:wasmexport writ_free
func writFree(uint32, uint32) {}

//go:wasmexport writ_execute
func writExecute(_, size uint32) uint64 {
	n, err := strconv.ParseInt(string(message[:min(size, uint32(len(message)))]), 10, 32)
	if err != nil {
		n = 0
	}
	text := fmt.Sprintf(`{"claims":[],"evidence":[],"artifacts":[],"output":"%d"}`, uint64(run(int32(n))))
	return uint64(uintptr(unsafe.Pointer(&message)))<<32 | uint64(copy(message[:], text))
}

// word is a word of a text and what is known of it.
type word struct {
	text  string
	count int
	share float64
}

// run makes texts of n words in all, counts their words and prints a report.
//
//go:wasmexport run
func run(n int32) int64 {
	const textWords = 1000
	state, sum := uint32(1), fnv.New64a()
	for left := int(n); left > 0; left -= textWords {
		words := count(text(&state, min(left, textWords)))
		sort.Slice(words, func(i, j int) bool {
			if words[i].count != words[j].count {
				return words[i].count > words[j].count
			}
			return words[i].text < words[j].text
		})
		entropy := 0.0
		for _, w := range words {
			entropy -= w.share * math.Log2(w.share)
			fmt.Fprintf(sum, "%-8s %5d %8.4f\n", w.text, w.count, 100*w.share)
		}
		fmt.Fprintf(sum, "entropy %.12g %x\n", entropy, math.Float64bits(entropy))
	}
	return int64(sum.Sum64())
}

// text returns words of one to three letters, as in a natural text some far more
// often than others.
func text(state *uint32, words int) string {
	var b strings.Builder
	for range words {
		*state = *state*1664525 + 1013904223
		x := float64(*state) / (1 << 32)
		b.WriteString(strconv.FormatInt(int64(math.Pow(36, 3*x*x)), 36))
		b.WriteByte(' ')
	}
	return b.String()
}

func count(text string) []word {
	counts := map[string]int{}
	total := 0
	for w := range strings.FieldsSeq(text) {
		counts[w]++
		total++
	}
	words := make([]word, 0, len(counts))
	for w, n := range counts {
		words = append(words, word{w, n, float64(n) / float64(total)})
	}
	return words
}
