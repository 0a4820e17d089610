// Package terminal is the approval of somebody at a terminal of the machine that the ledger is on.
//
// Without a passphrase it gives level Host: someone at a terminal of OS user U saw this exact change and said
// yes. With one it gives level Reauth.
//
// # The passphrase
//
// [Setup] turns the passphrase (in Unicode normal form C) and 16 random bytes by argon2id (RFC 9106, the second
// recommended option: 3 passes, 64 MiB, 4 lanes) into 32 bytes, which are the seed of an Ed25519 key (RFC 8032).
// The file approver.json in the home, mode 0600, holds salt, costs, OS user and the public key. Neither the
// passphrase nor the private key is stored anywhere: [Approve] derives the key again and signs.
//
// # What is signed
//
//	SHA-256("wetink/terminal/v1\x00" ‖ kind ‖ change ‖ digest ‖ shown ‖ user)
//
// where kind is "terminal" or "reauth", digest the 32 bytes of the Statement's Digest, shown the time in UTC
// as RFC 3339 with nanoseconds, and each of the five is preceded by its length as 8 bytes, big-endian.
// Evidence.Data of level Host is that hash alone. Evidence.Data of level Reauth is the 32 bytes of the public
// key's SHA-256 and the 64 bytes of the signature, so that the claim, maybe in another process, verifies it
// again from the stored bytes and the file.
//
// # What it does not prove
//
// Level Host proves nothing cryptographically: its hash only ties together what is stored.
//
// BUG(wetink): below level passkey nothing holds against an agent with a shell under the same OS user. It can
// open a pseudo-terminal and press y; it can replace approver.json by one of its own passphrase; it can replace
// the binary or watch the keyboard. Give the agent another OS user, or ask for a passkey.
package terminal
