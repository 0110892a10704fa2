package trace

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writrun/writ/guest-abi/abi"
)

var (
	run1    = abi.NewRunID([16]byte{1})
	testKey = []byte("0123456789abcdef0123456789abcdef")
)

// sealedHeaders are the headers of a small sealed run.
func sealedHeaders() []Header {
	h := func(lane Lane, seq uint64, kind Kind) Header {
		return Header{Lane: lane, Seq: seq, Kind: kind, Cause: CauseRuntime}
	}
	return []Header{
		h(LaneRun, 0, KindRunStart), h(LaneRun, 1, KindExecutionEnd),
		h("a", 0, KindStepStart), h("a", 1, KindHostCalls), h("a", 200, KindStepEnd),
		h(LaneControl, 0, KindAdmission), h(LaneControl, 1, KindRunEnd),
	}
}

func writeTrace(t testing.TB, headers []Header) ([]byte, abi.Digest, error) {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, run1)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		if err := w.Add(h.Encode()); err != nil {
			return nil, "", err
		}
	}
	root, _, err := w.End()
	return out.Bytes(), root, err
}

func TestTraceFileRoundTrip(t *testing.T) {
	b, root, err := writeTrace(t, sealedHeaders())
	if err != nil {
		t.Fatal(err)
	}
	var got []Header
	again, events, err := Read(bytes.NewReader(b), run1, func(h Header) error { got = append(got, h); return nil })
	if err != nil || again != root || events != 7 {
		t.Errorf("root %s, %d events, %v; want %s", again, events, err, root)
	}
	if diff := cmp.Diff(sealedHeaders(), got); diff != "" {
		t.Error(diff)
	}
}

func TestTraceOrder(t *testing.T) {
	change := func(f func([]Header) []Header) []Header { return f(sealedHeaders()) }
	tests := map[string][]Header{
		"nothing":                  nil,
		"run is not first":         change(func(h []Header) []Header { return h[2:] }),
		"RUN_END missing":          change(func(h []Header) []Header { return h[:6] }),
		"a gap":                    change(func(h []Header) []Header { h[1].Seq = 2; return h }),
		"a number twice":           change(func(h []Header) []Header { h[1].Seq = 0; return h }),
		"more calls than a batch":  change(func(h []Header) []Header { h[4].Seq = 258; return h }),
		"lane does not begin at 0": change(func(h []Header) []Header { h[2].Seq = 1; return h }),
		"lane comes back": change(func(h []Header) []Header {
			return slices.Insert(h, 5, Header{Lane: LaneRun, Seq: 2, Kind: KindRunStart, Cause: 1})
		}),
		"a lane after control": change(func(h []Header) []Header { return append(h, Header{Lane: "b", Kind: KindStepStart, Cause: 1}) }),
		"an event after RUN_END": change(func(h []Header) []Header {
			return append(h, Header{Lane: LaneControl, Seq: 2, Kind: KindRunEnd, Cause: 1})
		}),
		"an unknown kind": change(func(h []Header) []Header { h[3].Kind = 20; return h }),
	}
	for name, headers := range tests {
		if _, _, err := writeTrace(t, headers); err == nil {
			t.Errorf("%s: written", name)
		}
		b := appendPreamble(nil, traceMagic, run1)
		for _, h := range headers {
			b = AppendFrame(b, h.Encode())
		}
		if _, _, err := Read(bytes.NewReader(b), run1, func(Header) error { return nil }); err == nil {
			t.Errorf("%s: read", name)
		}
	}
}

// TestTraceFileChangedAnywhere changes, cuts and lengthens a trace file at every
// byte: it is never read as the same trace.
func TestTraceFileChangedAnywhere(t *testing.T) {
	b, root, err := writeTrace(t, sealedHeaders())
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) bool {
		got, _, err := Read(bytes.NewReader(b), run1, func(Header) error { return nil })
		return err == nil && got == root
	}
	for i := range b {
		changed := bytes.Clone(b)
		changed[i] ^= 0x20
		if read(changed) || read(b[:i]) {
			t.Errorf("accepted with byte %d changed or cut", i)
		}
	}
	if read(append(bytes.Clone(b), 0)) || read(append(bytes.Clone(b), b[len(b)-30:]...)) || !read(b) {
		t.Error("accepted with bytes added, or not accepted as it is")
	}
	if _, _, err := Read(bytes.NewReader(b), abi.NewRunID([16]byte{2}), func(Header) error { return nil }); err == nil {
		t.Error("accepted as another run's")
	}
}

func someStored() []Stored {
	return []Stored{
		{Salt: [16]byte{1}, Inline: []byte{0xf6}},
		{Salt: [16]byte{2}, Content: abi.DigestOf([]byte("c"))},
	}
}

func TestPayloadsFileRoundTrip(t *testing.T) {
	var out bytes.Buffer
	w, err := NewPayloadsWriter(&out, run1)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range someStored() {
		if err := w.Add(Address{"a", uint64(i)}, s); err != nil {
			t.Fatal(err)
		}
	}
	var got []Stored
	err = ReadPayloads(bytes.NewReader(out.Bytes()), run1, func(a Address, offset int64, size int) error {
		again, s, err := DecodePayloadEntry(out.Bytes()[offset : offset+int64(size)])
		if again != a || a.Seq != uint64(len(got)) {
			t.Errorf("address %v, want %v", again, a)
		}
		got = append(got, s)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(someStored(), got); diff != "" {
		t.Error(diff)
	}
	for i := range out.Len() {
		b := bytes.Clone(out.Bytes())
		b[i] ^= 4
		if err := ReadPayloads(bytes.NewReader(b), run1, func(Address, int64, int) error { return nil }); err == nil {
			t.Errorf("accepted with byte %d changed", i)
		}
	}
}

// testJournal is a journal of one group per event, and where each group ends.
func testJournal(t testing.TB) (b []byte, ends []int) {
	t.Helper()
	b, mac := JournalPreamble(testKey, run1)
	ends = append(ends, len(b))
	closer := NewCloser(testKey)
	group := func(frames ...[]byte) {
		buf := append(make([]byte, GroupHeadBytes), bytes.Join(frames, nil)...)
		buf, mac = closer.Close(mac, buf)
		b = append(b, buf...)
		ends = append(ends, len(b))
	}
	for i := range uint64(3) {
		s := Stored{Salt: [16]byte{byte(i)}, Inline: []byte{0xf6}}
		h := Header{Lane: "a", Seq: i, Kind: KindStepStart, Cause: 1, PayloadSize: 1, Commitment: Commit(s.Salt, s.Inline)}
		group(AppendEventFrame(nil, h.Encode(), s))
	}
	group(SealFrames([]Lane{LaneRun, "a", LaneControl})...)
	return b, ends
}

// readJournal returns the frames of the whole groups, and why it stopped.
func readJournal(b []byte) (frames []Frame, err error) {
	r, err := NewJournalReader(bytes.NewReader(b), testKey, run1)
	if err != nil {
		return nil, err
	}
	for {
		group, _, err := r.Next()
		if err != nil {
			return frames, err
		}
		for len(group) > 0 {
			f, n, err := DecodeFrame(group)
			if err != nil {
				return frames, err
			}
			frames, group = append(frames, f), group[n:]
		}
	}
}

func TestJournalRoundTrip(t *testing.T) {
	b, _ := testJournal(t)
	frames, err := readJournal(b)
	if !errors.Is(err, io.EOF) || len(frames) != 5 {
		t.Fatalf("%d frames, %v", len(frames), err)
	}
	if frames[2].Header.Seq != 2 || !frames[4].Seal || !slices.Equal(frames[3].Layout, []Lane{LaneRun, "a", LaneControl}) {
		t.Errorf("frames %+v", frames)
	}
}

func TestJournalCutIsTornAndChangedIsDamage(t *testing.T) {
	b, ends := testJournal(t)
	var fe *FrameError
	for i := range b {
		frames, err := readJournal(b[:i])
		if slices.Contains(ends, i) {
			if !errors.Is(err, io.EOF) {
				t.Errorf("cut at %d, the end of a group: %v", i, err)
			}
		} else if !errors.As(err, &fe) || !fe.Torn {
			t.Errorf("cut at %d: %v", i, err)
		}
		whole := 0
		for _, end := range ends[1:] {
			if end <= i {
				whole++
			}
		}
		if len(frames) != min(whole, 3) && i < len(b) {
			t.Errorf("cut at %d: %d frames", i, len(frames))
		}
		changed := bytes.Clone(b)
		changed[i] ^= 1
		if _, err := readJournal(changed); !errors.As(err, &fe) || fe.Torn {
			t.Errorf("byte %d changed: %v", i, err)
		}
	}
	swapped := slices.Concat(b[:ends[0]], b[ends[1]:ends[2]], b[ends[0]:ends[1]], b[ends[2]:])
	if _, err := readJournal(swapped); !errors.As(err, &fe) || fe.Torn {
		t.Errorf("two groups swapped: %v", err)
	}
	other, err := NewJournalReader(bytes.NewReader(b), []byte("another key"), run1)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.Next(); !errors.As(err, &fe) || fe.Torn {
		t.Errorf("another key: %v", err)
	}
}

func TestSealFramesOfManyLanes(t *testing.T) {
	layout := make([]Lane, 1000)
	for i := range layout {
		layout[i] = RuleLane(abi.ID("r"), "step")
	}
	var got []Lane
	frames := SealFrames(layout)
	for _, b := range frames {
		f, n, err := DecodeFrame(b)
		if err != nil || n != len(b) || n > FrameBytesMax {
			t.Fatalf("frame of %d bytes: %v", len(b), err)
		}
		got = append(got, f.Layout...)
	}
	if !slices.Equal(got, layout) || len(frames) != 5 {
		t.Errorf("%d lanes in %d frames", len(got), len(frames))
	}
}

func TestStoredCheck(t *testing.T) {
	small, big := []byte{0xf6}, bytes.Repeat([]byte{1}, InlineBytesMax+1)
	head := func(kind Kind, payload []byte) Header {
		return Header{Kind: kind, PayloadSize: uint64(len(payload)), Commitment: Commit([16]byte{}, payload)}
	}
	tests := []struct {
		name string
		h    Header
		s    Stored
		ok   bool
	}{
		{"inline", head(KindStepEnd, small), Stored{Inline: small}, true},
		{"large inline", head(KindStepEnd, big), Stored{Inline: big}, false},
		{"large inline batch", head(KindHostCalls, big), Stored{Inline: big}, true},
		{"large in content", head(KindStepEnd, big), Stored{Content: abi.DigestOf(big)}, true},
		{"small in content", head(KindStepEnd, small), Stored{Content: abi.DigestOf(small)}, false},
		{"batch in content", head(KindHostCalls, big), Stored{Content: abi.DigestOf(big)}, false},
		{"both", head(KindStepEnd, big), Stored{Inline: small, Content: abi.DigestOf(big)}, false},
		{"other payload", head(KindStepEnd, small), Stored{Inline: []byte{0xf5}}, false},
		{"other salt", head(KindStepEnd, small), Stored{Inline: small, Salt: [16]byte{1}}, false},
		{"other size", head(KindStepEnd, small), Stored{Inline: []byte{0xf6, 0xf6}}, false},
	}
	for _, test := range tests {
		if err := test.s.Check(test.h); (err == nil) != test.ok {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
