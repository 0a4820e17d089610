//go:build !unix

package terminal

import "io/fs"

// BUG(wetink): on Windows nobody looks at who can read and write the key file.
func notPrivate(fs.FileInfo) string { return "" }
