// Package gateway stands in front of MCP servers ("upstreams") and asks a [Guard] what becomes of each tool call.
//
// What needs no decision is forwarded as the bytes that came: of a message only its method, its id, and the name in
// its params are looked at. Numbers, _meta, unknown members, order and spacing survive. Both protocol eras pass:
// initialize (2025-11-25 and older) and requests that stand for themselves (2026-07-28), over stdio and over
// Streamable HTTP (https://modelcontextprotocol.io/specification/2026-07-28/basic/transports).
//
// # Reading order
//
// peek.go is what is read of a message, and what is refused because a guard and an upstream could read it
// differently. gateway.go is what is set up, session.go where each message of a client goes, link.go how an answer
// finds its way back, lists.go and calls.go where the guard is asked. child.go and remote.go are the two kinds of
// upstream, stdio.go and http.go the two fronts, and reverse.go the short way between HTTP and HTTP.
//
// # What is promised
//
//   - No call reaches an upstream that the guard did not pass, whatever the message looks like.
//   - No message is sent twice, but to an upstream that answered that it has no such session. Where an upstream ends before it answered, the caller is told that the outcome is
//     unknown; where nothing left this process, it is told that.
//   - Credentials of a client (Authorization, Cookie) never reach an upstream.
//
// # What is not promised
//
//   - That what an upstream says is true or harmless: results are forwarded, not judged.
//   - That carriage returns and line feeds between tokens survive on stdio, where they could end a line: they become
//     spaces. Ids and progress tokens that several clients could share are replaced on the way and come back as sent.
//   - That headers which repeat arguments (Mcp-Param-…) are compared with the body in front of an upstream on stdio.
//   - That a subscription made before an upstream died is there afterwards: its session is opened again, and
//     clients are told that lists may have changed.
package gateway
