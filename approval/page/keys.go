package page

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/wetink/wetink"
	"github.com/wetink/wetink/internal/secret"
)

// keys are derived from the one secret of the store, so that no MAC can be taken for one of another kind.
type keys struct{ link, form, state, session, conceal, relogin secret.Bytes }

func derive(from secret.Bytes) keys {
	key := func(of string) secret.Bytes {
		return secret.New(mac(from, []byte("wetink/page/"+of+"/v1")))
	}
	return keys{key("link"), key("form"), key("state"), key("session"), key("conceal"), key("relogin")}
}

// mac over parts, each preceded by its length: no two lists of parts are the same bytes.
func mac(key secret.Bytes, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key.Reveal())
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return h.Sum(nil)
}

var aliasEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// Link is where a person sees c. It says which change and nothing of it, cannot be guessed, and carries no power.
func (p *Server) Link(c wetink.Change) string { return p.origin.String() + p.path(c) }

// Inbox is where a person sees what waits.
func (p *Server) Inbox() string { return p.origin.String() + "/" }

func (p *Server) path(c wetink.Change) string { return "/c/" + p.alias(c.Tenant, c.ID) }

func (p *Server) alias(tenant wetink.Tenant, id wetink.ChangeID) string {
	m := mac(p.keys.link, []byte(tenant), []byte(id))
	return strings.TrimPrefix(string(id), "chg_") + "." + aliasEncoding.EncodeToString(m[:10])
}

// unalias gives the id back, if the alias is one of ours for that tenant.
func (p *Server) unalias(tenant wetink.Tenant, alias string) (wetink.ChangeID, bool) {
	short, _, ok := strings.Cut(alias, ".")
	id := wetink.ChangeID("chg_" + short)
	return id, ok && hmac.Equal([]byte(alias), []byte(p.alias(tenant, id)))
}

// form is what a drawn page sends back: which browser drew what, and when. Its MAC is the CSRF token.
type form struct {
	Nonce []byte // 32 bytes; a passkey signs it, too
	Shown time.Time
	Rev   int64
}

const nonceSize = 32

// seal binds a form to a purpose, the session, and the change as it was drawn.
func (p *Server) seal(f form, purpose string, session wetink.Digest, c wetink.Change) string {
	b := append([]byte{}, f.Nonce...)
	b = binary.BigEndian.AppendUint64(b, uint64(f.Shown.UnixMilli()))
	b = binary.BigEndian.AppendUint64(b, uint64(f.Rev))
	return base64.RawURLEncoding.EncodeToString(append(b, p.formMAC(b, purpose, session, c)...))
}

func (p *Server) formMAC(b []byte, purpose string, session wetink.Digest, c wetink.Change) []byte {
	d := c.Statement.Digest()
	return mac(p.keys.form, b, []byte(purpose), session[:], []byte(c.Tenant), []byte(c.ID), d[:])
}

// Why a form is not taken. None of them decides anything.
var (
	errForm = errors.New("this form is not one that we drew for you here")
	errOld  = errors.New("this page is too old")
	errSoon = errors.New("that was too quick to have been read")
)

// unseal takes a form back: drawn by us for that purpose, session and change, not too long ago and not just now.
func (p *Server) unseal(s, purpose string, session wetink.Digest, c wetink.Change, arm time.Duration) (form, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	const size = nonceSize + 16
	if err != nil || len(b) != size+sha256.Size || !hmac.Equal(b[size:], p.formMAC(b[:size], purpose, session, c)) {
		return form{}, errForm
	}
	f := form{b[:nonceSize], time.UnixMilli(int64(binary.BigEndian.Uint64(b[nonceSize:]))).UTC(), int64(binary.BigEndian.Uint64(b[nonceSize+8:]))}
	switch age := p.opt.Now().Sub(f.Shown); {
	case age > p.opt.FormLife:
		return f, errOld
	case age < arm:
		return f, errSoon
	}
	return f, nil
}

// nonceOf is the nonce of a form that was sealed a moment ago.
func nonceOf(sealed string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(b) < nonceSize {
		return nil, errForm
	}
	return b[:nonceSize], nil
}

// sealState keeps the state of a ceremony in the page, for one purpose.
func (p *Server) sealState(purpose string, state []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(mac(p.keys.state, []byte(purpose), state), state...))
}

func (p *Server) unsealState(purpose, s string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) < sha256.Size || !hmac.Equal(b[:sha256.Size], mac(p.keys.state, []byte(purpose), b[sha256.Size:])) {
		return nil, errForm
	}
	return b[sha256.Size:], nil
}

// conceal seals what a browser keeps for us and must not read: AES-256-GCM, bound to its purpose.
func (p *Server) conceal(purpose string, b []byte) string {
	return base64.RawURLEncoding.EncodeToString(aead(p.keys.conceal).Seal(nil, nil, b, []byte(purpose)))
}

func (p *Server) reveal(purpose, s string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, errForm
	}
	if b, err = aead(p.keys.conceal).Open(nil, nil, b, []byte(purpose)); err != nil {
		return nil, errForm
	}
	return b, nil
}

// aead of a derived key, which always has 32 bytes. It chooses its nonces.
func aead(key secret.Bytes) cipher.AEAD {
	block, err := aes.NewCipher(key.Reveal())
	if err != nil {
		panic(err)
	}
	a, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return a
}
