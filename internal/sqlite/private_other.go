//go:build !unix

package sqlite

import "io/fs"

func private(string, fs.FileInfo, fs.FileMode) error { return nil }
