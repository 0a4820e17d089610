// Package strictjson is the only reader of JSON that came from outside: tool arguments, answers of other systems,
// stored Statements. Two readers that understand one text differently are an attack: a person approves what one of
// them shows and another executes something else. So a text that any two readers could take differently is refused
// here, and what is accepted keeps its bytes.
//
// # What is accepted
//
// One RFC 8259 value, held to I-JSON (RFC 7493) where parsers are known to differ:
//
//   - UTF-8 only, no byte order mark, nothing but white space after the value.
//   - No \u escape of half a surrogate pair: readers replace it, drop it or keep it.
//   - No two members of one object with the same name, escapes resolved, nor with names that differ only in case.
//     Case is Unicode simple folding, which joins s with U+017F (ſ) and k with U+212A (the Kelvin sign): encoding/json
//     matches members that way, and so one name could hide another from a check (CVE-2026-27896).
//   - No NUL or other C0 control character in a member name (GHSA-q382-vc8q-7jhj). In a string value an escaped one,
//     \u0000 too, is allowed: a caller whose store cannot hold it refuses it.
//   - Not more than [Limits] allow. Size is looked at before the first byte is read, the others before anything is
//     allocated for what exceeds them.
//
// A number is never rounded. Its text survives byte for byte wherever no Go type is asked for: in [Compact],
// [Members], json.RawMessage, json.Number and any. So 9007199254740993 (2^53+1), 1e400 and -0 are accepted by [Check];
// a field that cannot hold one of them refuses it with [ErrRange].
//
// # What Decode does
//
// [Decode] fills Go values as encoding/json does, with these differences:
//
//   - A struct is closed: an unknown member is refused, and so is one that differs from a known member in case only.
//     The reason then names the known one. Absent members leave their fields as they were.
//   - null is accepted by pointers, any and json.RawMessage only. Not by slices and maps, and not by types with their
//     own UnmarshalJSON, which would take it for "absent" without a word.
//   - Integers are written without fraction and exponent: 1.0 and 1e2 are refused, and so is -0, whose sign would be
//     lost. A float field takes a number that it gives back when printed with as many digits: 0.1, but neither
//     9007199254740993 nor 1e-400.
//   - any gets map[string]any, []any, string, bool, nil and json.Number; never a float64.
//   - A fixed-size array needs just that many elements. A []byte is base64 in its one canonical form.
//   - What v held is replaced, not merged: pointers, maps and slices in it are never written through.
//   - On an error v is as it was.
//
// Kinds: structs (embedded ones are flattened), maps with string keys, slices, arrays, pointers, strings, bools, all
// integers and floats, any, json.RawMessage, json.Number, json.Unmarshaler, encoding.TextUnmarshaler. Another kind, or
// the tag option "string", is an error that is not an [*Error]: a mistake in the program, not in the input.
//
// # Errors
//
// Everything wrong with the input is an [*Error], which says where, and wraps one of the Err sentinels. It never quotes
// a string value, which may be a secret; it does quote numbers and, shortened and escaped to ASCII, member names.
// Errors of a type's own UnmarshalJSON or UnmarshalText are quoted as they are.
//
// No function keeps or changes its input, and all may be called concurrently.
package strictjson
