package main

import (
	"os"
	"time"
)

// syncRate is how often a second 4 KiB can be appended to a file and made durable: the floor of one commit.
func syncRate(dir string) (float64, error) {
	f, err := os.CreateTemp(dir, "floor-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	n := 0
	from := time.Now()
	for time.Since(from) < lasts {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := datasync(f); err != nil {
			return 0, err
		}
		n++
	}
	return float64(n) / time.Since(from).Seconds(), nil
}
