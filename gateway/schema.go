package gateway

import _ "embed"

// Schema is the JSON Schema of a wetink.yaml, for editors. It says less than ParseConfig does.
//
//go:embed wetink.schema.json
var Schema []byte
