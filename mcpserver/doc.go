// Package mcpserver gives an agent the tools of one guarded target, on the official Go SDK: preview, apply, undo
// and status of a change, and whatever reads belong to the target.
//
// # What the tools promise
//
//   - apply takes an id and a token, nothing else. What runs is what the preview stored.
//   - A secret is shown once, in the result that made it: confirmation_token in a preview's, undo_token in an
//     apply's, and only at level agent. Status never holds one, nor a hash.
//   - At any other level apply and undo claim nothing: they answer the state, and what a person has to do.
//   - Nothing that arrives over the connection is evidence of a person. Client names are what clients claim.
//
// What a model needs stands in content (as JSON text) and in structuredContent: hosts show it one or the other.
//
// Arguments are read by the engine's own strict reader from the bytes that arrived, not from the SDK's decoding,
// in which the last of two equal keys wins.
//
// # Protocol
//
// One server speaks the stateless 2026-07-28 revision and the older ones with a handshake
// (https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning). Lists are cached privately, and
// no logging capability is advertised.
package mcpserver
