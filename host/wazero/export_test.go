package wazero

// SplitKept takes kept code apart.
var SplitKept = splitKept
