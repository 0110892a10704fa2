package trace

import (
	"bytes"
	"testing"
)

func FuzzDecodeHeader(f *testing.F) {
	f.Add(header().Encode())
	for _, h := range sealedHeaders() {
		f.Add(h.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHeader(b)
		if err == nil && !bytes.Equal(h.Encode(), b) {
			t.Errorf("%x decodes and encodes as %x", b, h.Encode())
		}
	})
}

func FuzzPayload(f *testing.F) {
	for kind := range kinds {
		b, err := EncodePayload(NewPayload(kind))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(kind), b)
	}
	b, _ := EncodePayload(HostCalls{Calls: someCalls()})
	f.Add(uint8(KindHostCalls), b)
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		v := NewPayload(Kind(kind))
		if v == nil || DecodePayload(b, v) != nil {
			return
		}
		again, err := EncodePayload(v)
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%x decodes and encodes as %x, %v", b, again, err)
		}
		if _, err := PayloadJSON(Kind(kind), b); err != nil {
			t.Errorf("%x has no JSON: %v", b, err)
		}
	})
}

func FuzzItem(f *testing.F) {
	for _, c := range someCalls() {
		f.Add([]byte(c.Request))
	}
	f.Add([]byte{0xa1, 0x41, 0, 0x81, 0xf6})
	f.Fuzz(func(t *testing.T, b []byte) {
		if CheckPayload(b) != nil {
			return
		}
		if _, err := Item(b).MarshalJSON(); err != nil {
			t.Errorf("%x has no JSON: %v", b, err)
		}
	})
}

func FuzzJournal(f *testing.F) {
	b, ends := testJournal(f)
	f.Add(b)
	f.Add(b[:ends[2]+5])
	f.Add(append(b[:ends[1]:ends[1]], make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, _ := readJournal(b)
		if len(frames) > 0 && !bytes.HasPrefix(b, []byte(journalMagic)) {
			t.Error("frames without a journal")
		}
	})
}

func FuzzDecodeFrame(f *testing.F) {
	b, ends := testJournal(f)
	for i, end := range ends[1:] {
		f.Add(b[ends[i]+GroupHeadBytes : end-macBytes])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, n, err := DecodeFrame(b)
		if err != nil || frame.HeaderRaw == nil {
			return
		}
		if again := AppendEventFrame(nil, frame.HeaderRaw, frame.Stored); !bytes.Equal(again, b[:n]) {
			t.Errorf("%x decodes and encodes as %x", b[:n], again)
		}
	})
}

func FuzzReadTrace(f *testing.F) {
	b, _, _ := writeTrace(f, sealedHeaders())
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var headers []Header
		root, _, err := Read(bytes.NewReader(b), run1, func(h Header) error { headers = append(headers, h); return nil })
		if err != nil {
			return
		}
		again, want, err := writeTrace(t, headers)
		if err != nil || want != root || !bytes.Equal(again, b) {
			t.Errorf("%x reads and writes as %x, %v", b, again, err)
		}
	})
}

func FuzzReadPayloads(f *testing.F) {
	var out bytes.Buffer
	w, _ := NewPayloadsWriter(&out, run1)
	for i, s := range someStored() {
		_ = w.Add(Address{"a", uint64(i)}, s)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = ReadPayloads(bytes.NewReader(b), run1, func(a Address, offset int64, size int) error {
			_, s, err := DecodePayloadEntry(b[offset : offset+int64(size)])
			if err != nil {
				t.Errorf("entry %v does not decode again: %v", a, err)
			}
			_, err = s.PayloadSum()
			return err
		})
	})
}
