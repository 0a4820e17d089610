package notify

import "github.com/wetink/wetink/internal/secret"

// Secret prints as [redacted]. NewSecret makes one.
type Secret = secret.Bytes

// NewSecret wraps b, which is not copied.
func NewSecret(b []byte) Secret { return secret.New(b) }
