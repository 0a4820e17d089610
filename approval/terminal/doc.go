// Package terminal is the approval of somebody at a terminal of the machine that the ledger is on: level Host, and the
// record says that someone at a terminal of OS user U saw this exact change and said yes. With a passphrase, which this
// package can ask for, package passphrase makes more of it.
//
// Evidence.Data is
//
//	SHA-256("wetink/terminal/v1\x00" ‖ kind ‖ change ‖ digest ‖ shown ‖ user)
//
// where kind is "terminal", digest the 32 bytes of the Statement's Digest, shown the time in UTC as RFC 3339 with
// nanoseconds, and each of the five is preceded by its length as 8 bytes, big-endian. It proves nothing
// cryptographically: it only ties together what is stored.
//
// BUG(wetink): an agent with a shell under the same OS user can open a pseudo-terminal and press y.
package terminal
