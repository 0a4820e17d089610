// Package passphrase is approval by somebody who gave their passphrase again for this very change: evidence of level
// Reauth, at a terminal or on the page.
//
// # The passphrase
//
// [Service.Set] turns the passphrase (in Unicode normal form C) and 16 random bytes by argon2id (RFC 9106, the second
// recommended option: 3 passes, 64 MiB, 4 lanes) into 32 bytes, which are the seed of an Ed25519 key (RFC 8032). What
// is stored of it is salt, costs and the public key. Neither the passphrase nor the private key is stored anywhere:
// [Service.Approve] derives the key again and signs.
//
// # What is signed
//
//	SHA-256("wetink/passphrase/v1\x00" ‖ client ‖ tenant ‖ change ‖ digest ‖ shown ‖ person)
//
// where client is "terminal" or "page", digest the 32 bytes of the Statement's Digest, shown the time in UTC as RFC 3339
// with nanoseconds, and each of the six is preceded by its length as 8 bytes, big-endian. Evidence.Data is the SHA-256 of
// the public key and the 64 bytes of the signature, so that the claim, maybe in another process, verifies it again
// from the stored bytes and the record.
//
// # What it does not prove
//
// BUG(wetink): below level passkey nothing holds against an agent with a shell under the same OS user. It can replace the
// stored key by one of its own passphrase, replace the binary, or watch the keyboard. Give the agent another OS user, or
// ask for a passkey.
package passphrase
