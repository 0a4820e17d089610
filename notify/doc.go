// Package notify tells people that something waits for them. It is a reader of Events and nothing else: the
// engine does not know it, and nothing that the engine does waits for a delivery.
//
// # What is promised
//
//   - At least once: each [Channel] has its own durable cursor, which moves only after Send has returned nil. A
//     crash between the two sends the same message again, under the same id.
//   - A channel that fails or hangs delays only itself. It is tried again with back-off and jitter, and gives up
//     on one message after Options.GiveUp.
//   - No content: a [Message] is two numbers, a time, an id and a link. It has no title, target, account, person
//     or digest, whoever carries it: push services, mail archives and lock screens are other readers, an agent
//     that reads its user's mail is one too, and a person who decides from a message has not seen the change.
//   - No power: there is no button that approves, and the link opens a page that asks for a session.
//
// # What is not promised
//
//   - Exactly once. Whoever receives a message drops one whose id is known.
//   - That somebody has read it, or reads it before the change expires.
//   - An order between channels.
//
// # Reading order
//
// message.go is what is sent. notify.go has the interfaces and Run, reader.go the way of one message from the
// Events to one channel. Then one file a channel: webhook.go, ntfy.go, email.go, webpush.go, desktop.go.
// dial.go is what those that speak HTTP to addresses of others share.
package notify
