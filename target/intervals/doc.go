// Package intervals guards an Intervals.icu calendar: a wetink.Target with create, update, delete, bulk_create,
// bulk_delete, swap and copy_week, and a client for what one reads.
//
// The service (OpenAPI at https://intervals.icu/api/v1/docs, and its forum) has no conditional write: no ETag,
// no version. So an approval is bound to what was read, the object is read again right before the write, and
// what was written is read back. The window between that last read and the write is one round trip long; a
// change of somebody else inside it is overwritten, and cannot be seen.
//
// What an approval is bound to is everything that the service sends of an event but the fields in Ignored,
// each of which has its reason there; the workout's steps are bound by their digest. An undo looks at the same
// fields but those that the service computes from the steps by itself.
//
// A create carries an external_id of ours and goes through the bulk endpoint with upsert, the only idempotent
// write that the service has: sent twice it is one event, and it can be found again when the answer was lost.
//
// Nothing is ever sent again by this package: write connections are not kept alive, because net/http sends a
// request again when a kept connection breaks under it.
package intervals
