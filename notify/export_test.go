package notify

import (
	"net"
	"net/netip"
	"time"
)

// The seams that tests of this package open.

func Public(a netip.Addr) bool { return public(a) }

func BackOff(failures int) time.Duration { return backOff(failures) }

func DesktopCommand(system string, m Message) []string { return desktopCommand(system, m) }

func (w *Webhook) SetResolver(r *net.Resolver) { w.http.dialer.Resolver = r }
