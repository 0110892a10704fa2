package trace

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// Call is one host call as recorded: which function, what was asked, what was
// answered, and the fuel that remained. The remaining fuel is a fingerprint of
// all control flow since the call before.
type Call struct {
	_       struct{} `cbor:",toarray"`
	Fn      uint16   `json:"fn"`      // number in abi.HostCalls, or abi.CallRefill
	Request Item     `json:"request"` // one core-deterministic CBOR item; nil means null
	Result  int64    `json:"result"`
	Fuel    uint64   `json:"fuel"`
}

// HostCalls is the payload of a HOST_CALLS event: an array of 1 to
// BatchCallsMax calls. Call i has the event's sequence number plus i.
type HostCalls struct {
	Calls []Call `json:"calls"`
}

// AppendCall appends c as an array of four items. It does not allocate beyond
// growing dst. The caller vouches that c.Request is core-deterministic.
func AppendCall(dst []byte, c *Call) []byte {
	dst = append(dst, 4<<5|4)
	dst = appendHead(dst, 0, uint64(c.Fn))
	if len(c.Request) == 0 {
		dst = append(dst, cborNull)
	} else {
		dst = append(dst, c.Request...)
	}
	if c.Result < 0 {
		dst = appendHead(dst, 1, uint64(^c.Result))
	} else {
		dst = appendHead(dst, 0, uint64(c.Result))
	}
	return appendHead(dst, 0, c.Fuel)
}

const cborNull = 0xf6

// AppendCallsHead appends the array head that goes before count calls.
func AppendCallsHead(dst []byte, count int) []byte { return appendHead(dst, 4, uint64(count)) }

// AppendUint appends a CBOR unsigned integer, for requests.
func AppendUint(dst []byte, v uint64) []byte { return appendHead(dst, 0, v) }

// AppendInt appends a CBOR integer, for requests.
func AppendInt(dst []byte, v int64) []byte {
	if v < 0 {
		return appendHead(dst, 1, uint64(^v))
	}
	return appendHead(dst, 0, uint64(v))
}

// AppendBytes appends a CBOR byte string, for requests.
func AppendBytes(dst, b []byte) []byte { return append(appendHead(dst, 2, uint64(len(b))), b...) }

// AppendText appends a CBOR text string, for requests; s must be UTF-8.
func AppendText(dst []byte, s string) []byte { return append(appendHead(dst, 3, uint64(len(s))), s...) }

// AppendArrayHead appends the head of a CBOR array of count items, for requests.
func AppendArrayHead(dst []byte, count int) []byte { return appendHead(dst, 4, uint64(count)) }

// MarshalCBOR encodes the calls as one array.
func (h HostCalls) MarshalCBOR() ([]byte, error) {
	b := AppendCallsHead(nil, len(h.Calls))
	for i := range h.Calls {
		b = AppendCall(b, &h.Calls[i])
	}
	return b, nil
}

// UnmarshalCBOR decodes what MarshalCBOR wrote.
func (h *HostCalls) UnmarshalCBOR(b []byte) error {
	count, err := CallCount(b)
	if err != nil {
		return err
	}
	calls := make([]Call, 0, count)
	if err := decoding().Unmarshal(b, &calls); err != nil {
		return err
	}
	h.Calls = calls
	return CheckPayload(b)
}

// CallCount reads the number of calls in a HOST_CALLS payload.
func CallCount(payload []byte) (uint64, error) {
	major, count, _, err := itemHead(payload)
	if err != nil {
		return 0, fmt.Errorf("read host calls: %w", err)
	}
	if major != 4 || count == 0 || count > BatchCallsMax {
		return 0, fmt.Errorf("read host calls: not an array of 1 to %d calls", BatchCallsMax)
	}
	return count, nil
}

// Item is one core-deterministic CBOR item inside another.
type Item []byte

// MarshalCBOR returns the item itself.
func (i Item) MarshalCBOR() ([]byte, error) { return cbor.RawMessage(i).MarshalCBOR() }

// UnmarshalCBOR copies the item; null becomes nil.
func (i *Item) UnmarshalCBOR(b []byte) error {
	*i = nil
	if len(b) != 1 || b[0] != cborNull {
		*i = append(*i, b...)
	}
	return nil
}
