//go:build !unix

package main

import (
	"errors"
	"syscall"
)

// wsaeaddrinuse is what Windows says (winsock2.h).
const wsaeaddrinuse = syscall.Errno(10048)

func isInUse(err error) bool { return errors.Is(err, wsaeaddrinuse) }
