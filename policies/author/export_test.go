package author

// ReadCases reads a file of cases.
func ReadCases(s Source) ([]Case, error) { return readCases(s) }
