package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Message is all that a Channel ever learns.
type Message struct {
	ID      string    // of this message, the same in every attempt: letters, digits, "_"; at most 64
	Waiting int       // changes that wait for a decision
	InDoubt int       // changes of which nobody knows the outcome
	Link    string    // absolute, without power; "" if none is configured
	At      time.Time // of the newest event that it tells of
}

// Title is the same for every message.
const Title = "wetink"

// maxBytes bounds Bytes, for the receivers that have little room. Link is all that could be long.
const maxBytes = 1024

// Text is one line in words.
func (m Message) Text() string {
	switch {
	case m.InDoubt == 0:
		return changes(m.Waiting) + " waiting"
	case m.Waiting == 0:
		return changes(m.InDoubt) + " in doubt"
	default:
		return fmt.Sprintf("%s waiting, %d in doubt", changes(m.Waiting), m.InDoubt)
	}
}

func changes(n int) string {
	if n == 1 {
		return "1 change is"
	}
	return fmt.Sprintf("%d changes are", n)
}

// Type is "change.waiting" or "change.in_doubt"; the former where a message tells of both.
func (m Message) Type() string {
	if m.Waiting == 0 && m.InDoubt > 0 {
		return "change.in_doubt"
	}
	return "change.waiting"
}

// Bytes is the message for programs: an object of type, timestamp and data, as Standard Webhooks recommends,
// where data has id, text, waiting, in_doubt and link. At most 1 KiB, or an error.
func (m Message) Bytes() ([]byte, error) {
	type data struct {
		ID      string `json:"id"`
		Text    string `json:"text"`
		Waiting int    `json:"waiting"`
		InDoubt int    `json:"in_doubt"`
		Link    string `json:"link"`
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // six bytes for each & of the link
	err := e.Encode(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      data      `json:"data"`
	}{m.Type(), m.At.UTC(), data{m.ID, m.Text(), m.Waiting, m.InDoubt, m.Link}})
	if err != nil {
		return nil, fmt.Errorf("encode message %s: %w", m.ID, err)
	}
	if b.Len() > maxBytes {
		return nil, fmt.Errorf("encode message %s: %d bytes, at most %d: use a shorter link", m.ID, b.Len(), maxBytes)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// checkLink refuses what a receiver could not open, or what could break out of a header or a line of mail.
func checkLink(link string) error {
	if link == "" {
		return nil
	}
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return errors.New("the link is no URL")
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return errors.New("the link must begin with https:// (or http:// for this machine)")
	case u.User != nil:
		return errors.New("the link must not carry a name or a password")
	case len(link) > 512:
		return fmt.Errorf("the link has %d bytes, at most 512", len(link))
	case strings.ContainsFunc(link, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"<>\\", r) }):
		return errors.New("the link has a character that no URL may have as it is: escape it")
	}
	return nil
}
