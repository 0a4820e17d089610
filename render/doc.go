// Package render makes what a person reads out of a Change: the one place that escapes, and that reveals what
// could not be seen.
//
// Everything shown is decoded from the stored Statement and its Snapshots, the bytes that are signed; a row that
// was edited behind our back is an error, not a picture. Nothing that an agent or an outside system wrote can
// look like a sentence of ours: values and names stand in quotes, on their own lines, and pass through [Line].
// Two different values never look alike, and no value is ever cut.
package render
