//go:build unix

package gateway

import (
	"net"
	"syscall"
)

// quiet reports a connection that the other side has neither closed nor written to.
func quiet(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	var b [1]byte
	var seen error
	err = raw.Read(func(fd uintptr) bool {
		_, _, seen = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	return err == nil && (seen == syscall.EAGAIN || seen == syscall.EWOULDBLOCK)
}
