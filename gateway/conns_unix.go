//go:build unix

package gateway

import (
	"net"
	"syscall"
)

// quiet looks at a connection without using it.
func quiet(c net.Conn) func() bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return func() bool { return false }
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return func() bool { return false }
	}
	var b [1]byte
	var seen error
	look := func(fd uintptr) bool {
		_, _, seen = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	}
	return func() bool {
		err := raw.Read(look)
		return err == nil && (seen == syscall.EAGAIN || seen == syscall.EWOULDBLOCK)
	}
}
