// Package oidc lets people sign in on the approval page at the issuer of their company, by OpenID Connect.
//
// # What is promised
//
//   - The authorization code flow with PKCE (S256), state and nonce. The answer counts only together with the state of the
//     browser that asked, within ten minutes, and once in this process.
//   - An id_token counts if the issuer's key signed it by RS256, ES256, PS256 or EdDSA, for this client alone, for this nonce,
//     and if it has not run out. An answer of another issuer is refused where the issuer says who it is (RFC 9207).
//   - A fresh sign-in counts only if the issuer says that it happened after it was asked for. prompt=login is a wish that
//     whoever drives the browser can take out of the address; auth_time, in what the issuer signed, is what counts.
//   - Nothing is asked of the issuer before somebody signs in, so an issuer that is down does not stop the page; the next
//     sign-in asks again.
//
// # What is not promised
//
// That the issuer is honest: whom it names is believed, within what the page has bound to it before. That somebody is there:
// an agent that can drive the browser and knows what the issuer asks for can sign in. Access tokens are not kept or used.
//
// Sources: OpenID Connect Core 1.0 (sections 3.1, 5.7), Discovery 1.0, RFC 6749, RFC 7636, RFC 9207, RFC 9700.
package oidc
