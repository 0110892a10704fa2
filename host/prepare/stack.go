package prepare

// Stack budgets, in slots of one value. A call of a function that itself calls
// others takes its frame from the budget; one that calls nothing ends before it
// can nest and takes nothing. The least frame bounds the number of frames: at
// most 1,638 in the portable profile, where the strictest engine overflows at
// 2,000, and 16,384 in the deep one.
const (
	portableSlots    = 16_384
	portableFrameMin = 10
	deepSlots        = 65_536
	deepFrameMin     = 4
	slotsPerCall     = 4 // what a call takes beside parameters, locals and operands
)

// slots is what a call of a body of so many slots takes from the budget.
func (r rules) slots(frame uint64) uint64 {
	if r.deep {
		return max(frame, deepFrameMin)
	}
	return max(frame, portableFrameMin)
}

func (r rules) stackSlots() uint64 {
	if r.deep {
		return deepSlots
	}
	return portableSlots
}

func (r rules) profile() string {
	if r.deep {
		return ProfileDeep
	}
	return ProfilePortable
}
