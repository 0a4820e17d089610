// Package passkey is approval by WebAuthn (https://www.w3.org/TR/webauthn-3/): evidence of level Passkey, which
// anybody can check without this server.
//
// # What is signed
//
// An authenticator signs authenticatorData ‖ SHA-256(clientDataJSON), and clientDataJSON holds the challenge that the
// page asked with. For an approval that is
//
//	SHA-256("wetink/approve/passkey/v1\x00" ‖ change ‖ digest ‖ tenant ‖ person ‖ rp id ‖ origin ‖ nonce)
//
// where digest is the 32 bytes of the Statement's Digest, nonce 32 random bytes of the page, and each of the seven is
// preceded by its length as 8 bytes, big-endian. The digest covers account, action, level, policy and expiry.
//
// Evidence.Data is a JSON object with all that [Check] needs: the signature, what was signed, and the public key as
// SPKI (RFC 5280), made when the passkey was enrolled, so that nobody needs CBOR to check it later.
//
// # What it does not prove
//
// WebAuthn signs a challenge, not what was on the screen: a page that lies about the change gets a signature, too. "User
// verified" is what the authenticator says of a PIN or a fingerprint; everybody who is enrolled on that device counts.
// A passkey that is synced can be on several devices, and software can play an authenticator: without attestation
// nobody can tell. A signature proves the use of a key, not that its owner understood.
package passkey
