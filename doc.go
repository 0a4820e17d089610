// Package wetink stands between an AI agent and anything it could change.
//
// An agent drafts a change; a person signs exactly that draft, against exactly the state they saw; it
// happens at most once; until the ink is dry it can be undone; and the record says no more about the
// approval than was proved.
//
// # Reading order
//
// change.go is the noun: what a [Change] is and where it can go. statement.go is what a person signs.
// ledger.go is what is durable. engine.go has the verbs in order of life: [Engine.Preview],
// [Engine.Approve] (verify.go: what evidence is worth), [Engine.Apply]. execute.go is the one place that
// writes outside, settle.go records the end, undo.go is [Engine.Undo], and reconcile.go is what happens when
// an answer was lost.
//
// # What is promised
//
//   - What runs is what was previewed: the [Statement] is encoded once, stored, and from then on only
//     decoded. No argument of apply but an id, a ticket and a digest takes part in it.
//   - At most once, never exactly once: the claim is durable before anything is sent, nothing is ever
//     sent again, and no state leads back to pending or approved.
//   - Against the state that was seen: every object is read again after the claim and before the first
//     send. If any differs from its [Snapshot], nothing is sent and the Change is failed.
//   - Honest outcomes: failed means proved that nothing took effect; an unknown outcome is in doubt, and
//     stays so until the outside system, a late answer of the same claim, or a person tells.
//   - The level of an approval is computed from evidence, never claimed by a caller.
//
// # What is not promised
//
//   - That a proposal is wise, or that an approval was a careful one.
//   - That the window between the last read and the write is closed where the outside system has no
//     conditional write: it is one round trip long, and a write of somebody else inside it is overwritten.
//   - That a person was there, below the level [Passkey] against an agent which has a shell under the same
//     user of the operating system.
//   - That effects outside the target (a copy on a watch, a mail that went out) can be undone.
//   - Access control by the ledger: whoever can write its file can write its rows. Rows edited between
//     approval and apply are refused where the Statement or the evidence binds them.
//
// # Formats
//
// A change id is "chg_" and 26 characters of Crockford base32: 48 bits of milliseconds, then 80 random
// bits; it orders by time and is never a secret. A [Digest] is SHA-256 of "wetink/statement/v1\x00" and the
// Statement's bytes, written as 64 hex digits. A [Ticket] is a prefix and 256 random bits; what is stored
// of it is [Sealed]. The bytes of an [Event] are fixed: see [Event.Bytes].
package wetink
