package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/wetink/wetink/approval/oidc"
	"github.com/wetink/wetink/approval/page"
	"github.com/wetink/wetink/internal/secret"
	"github.com/wetink/wetink/render"
)

// oidcFile is page.oidc of the YAML.
type oidcFile struct {
	Issuer      string   `yaml:"issuer"`
	ClientID    string   `yaml:"client_id"`
	SecretFile  string   `yaml:"client_secret_file"`
	Name        string   `yaml:"name"`
	PersonClaim string   `yaml:"person_claim"`
	GroupsClaim string   `yaml:"groups_claim"`
	Approvers   []string `yaml:"approvers"`
}

// OIDC is where the people of a company sign in, and who of them approves.
type OIDC struct {
	Name      string
	Approvers []string
	client    oidc.Config // but for the redirect, which follows from the page's origin
}

const callbackPath = "/signin/oidc/callback"

// signOn reads page.oidc. Every mistake is found when a process starts, not when somebody signs in.
func (f *oidcFile) signOn(file string, origin *url.URL) (*OIDC, error) {
	bad := func(key, value, want string) error { return badSetting("page.oidc."+key+" in "+file, value, want) }
	if f == nil {
		return nil, nil
	}
	o := &OIDC{Name: strings.TrimSpace(f.Name), Approvers: f.Approvers,
		client: oidc.Config{Issuer: f.Issuer, ClientID: f.ClientID, PersonClaim: f.PersonClaim, GroupsClaim: f.GroupsClaim, Redirect: origin.String() + callbackPath}}
	switch {
	case f.Issuer == "":
		return nil, bad("issuer", "", "the address of the issuer, such as https://id.example.com")
	case f.ClientID == "":
		return nil, bad("client_id", "", "the name that the issuer gave this page")
	case f.PersonClaim != "" && f.PersonClaim != "email" && f.PersonClaim != "sub":
		return nil, bad("person_claim", f.PersonClaim, "email, which the issuer has to have verified, or sub")
	case f.GroupsClaim != "" && len(f.Approvers) == 0:
		return nil, bad("approvers", "", "the groups that approve, as groups_claim is set")
	}
	for _, g := range f.Approvers {
		if strings.TrimSpace(g) == "" || g != strings.TrimSpace(g) {
			return nil, bad("approvers", g, "names of groups, exactly as the issuer writes them")
		}
	}
	if f.SecretFile != "" {
		name := f.SecretFile
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(file), name)
		}
		var err error
		if o.client.Secret, err = readSecret(name); err != nil {
			return nil, fmt.Errorf("page.oidc.client_secret_file in %s: %w", file, err)
		}
	}
	if o.Name == "" {
		if u, err := url.Parse(f.Issuer); err == nil {
			o.Name = u.Hostname()
		}
	}
	if _, err := oidc.New(o.client, nil); err != nil {
		return nil, fmt.Errorf("%w: page.oidc in %s: %w", ErrConfig, file, err)
	}
	return o, nil
}

// maxSecret is far more than issuers give.
const maxSecret = 4096

// readSecret reads a file of one secret, which others must neither write nor read.
func readSecret(name string) (secret.Bytes, error) {
	h, err := os.Open(name)
	if err != nil {
		return secret.Bytes{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	defer h.Close()
	info, err := h.Stat()
	if err != nil {
		return secret.Bytes{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := hidden(name, info); err != nil {
		return secret.Bytes{}, err
	}
	b, err := io.ReadAll(io.LimitReader(h, maxSecret+1))
	if err != nil {
		return secret.Bytes{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if b = bytes.TrimSpace(b); len(b) == 0 || len(b) > maxSecret {
		return secret.Bytes{}, fmt.Errorf("%w: %s has %d bytes: want the client secret and nothing else", ErrConfig, name, len(b))
	}
	return secret.New(b), nil
}

// page is o for the approval page; nil if nobody signs in at an issuer.
func (o *OIDC) page() (*page.SignOn, error) {
	if o == nil {
		return nil, nil
	}
	s, err := oidc.New(o.client, nil)
	if err != nil {
		return nil, err
	}
	return &page.SignOn{Issuer: pageIssuer{s}, Name: o.Name, Approvers: o.Approvers}, nil
}

// pageIssuer is oidc.Service in the page's own types.
type pageIssuer struct{ *oidc.Service }

// Finish implements page.Issuer.
func (p pageIssuer) Finish(ctx context.Context, state []byte, answer url.Values) (page.Identity, error) {
	id, err := p.Service.Finish(ctx, state, answer)
	return page.Identity(id), err
}

// says what page.oidc means, for `wetink check`. anybody: somebody has signed in there.
func (o *OIDC) says(anybody bool) (out []string) {
	named := "by the address that it has verified"
	if o.client.PersonClaim == "sub" {
		named = "by their subject (sub)"
	}
	out = append(out, fmt.Sprintf("People sign in with %s, at %s, and are named %s.", render.Line(o.Name), render.Line(o.client.Issuer), named),
		"It has to know this page as "+render.Line(o.client.ClientID)+", with the redirect "+o.client.Redirect+".")
	if groups := o.client.GroupsClaim; len(o.Approvers) == 0 {
		out = append(out, "Only who is known already gets in: page.oidc.approvers names no group.")
	} else {
		if groups == "" {
			groups = "groups"
		}
		out = append(out, fmt.Sprintf("Who is in %s (claim %s) gets in and may decide about what others asked for; who is not, gets in only if known already, and may not.",
			render.Line(strings.Join(o.Approvers, " or ")), render.Line(groups)))
	}
	if !anybody {
		out = append(out, "Nobody has signed in there yet. Without approval in the configuration, a change needs the page only once somebody can sign in.")
	}
	return out
}
