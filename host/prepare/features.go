package prepare

// featureSet is a set of features beyond the first release of WebAssembly.
type featureSet uint

const (
	featureMutableGlobals featureSet = 1 << iota
	featureSignExtension
	featureTruncation
	featureMultiValue
	featureBulkMemory
	featureReferenceTypes
	featureSIMD
)

func (s *featureSet) add(f featureSet) { *s |= f }

// names lists the features in a fixed order, by the names toolchains use.
func (s featureSet) names() []string {
	names := []string{}
	for i, name := range []string{"mutable-globals", "sign-ext", "nontrapping-fptoint", "multivalue", "bulk-memory", "reference-types", "simd128"} {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}
