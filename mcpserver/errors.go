package mcpserver

import (
	"errors"

	"github.com/wetink/wetink"
)

// remedies is the one table from what the engine refuses to what an agent should do. The first that matches
// counts. In every case nothing was changed by the call.
var remedies = []struct {
	err  error
	step string
}{
	{wetink.ErrTicket, "Nothing was used up. Use the token of this very change; it is shown once, when it is made. If it is lost: a fresh preview, or an undo without a token, which a person approves."},
	{wetink.ErrExpired, "It was not declined: prepare it again if the person still wants it."},
	{wetink.ErrStale, "Somebody changed it meanwhile, and nothing was overwritten. Read it again and tell the person what differs."},
	{wetink.ErrOff, "It can be applied as soon as they are on."},
	{wetink.ErrNotApproved, "A person has to approve it first. You cannot approve it."},
	{wetink.ErrLevel, "A person has to approve it in a stronger way; ask the operator."},
	{wetink.ErrNoChannel, "Tell the operator; until then nothing can be approved."},
	{wetink.ErrDenied, "The operator's rules forbid it. Do not try it in another form."},
	{wetink.ErrScope, "The person has to allow it for this connection."},
	{wetink.ErrAccount, "The server is configured for another account now. Make a fresh preview."},
	{wetink.ErrVersion, "Make a fresh preview."},
	{wetink.ErrRestored, "Make a fresh preview."},
	{wetink.ErrTampered, "Tell the operator: somebody edited the stored record. Make a fresh preview."},
	{wetink.ErrNotFound, "Check the id: it is the preview_id or operation_id of an earlier answer."},
	{wetink.ErrCapped, "The operator's daily limit is reached. Nothing was used up; try again tomorrow."},
	{wetink.ErrEarly, "It is scheduled for later; ask for its status."},
	{wetink.ErrNoTarget, "Another process carries it out; ask for its status."},
	{wetink.ErrNoUndo, "Tell the person that it cannot be undone; a new change can set things right."},
	{wetink.ErrConflict, "Something else happened to it at the same moment; ask for its status."},
	{wetink.ErrState, "Ask for its status."},
}

func remedy(err error) string {
	for _, r := range remedies {
		if errors.Is(err, r.err) {
			return r.step
		}
	}
	return ""
}
