package codecache

// SetBytesMax changes the bound of the whole cache.
func (d *Dir) SetBytesMax(n int64) { d.bytesMax = n }
