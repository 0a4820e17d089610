package wetink

import "errors"

// Refusals of the engine. Nothing was claimed and nothing was burned, except where a comment says so.
// Each reaches a person with a next step; the edge (mcpserver, cmd) maps them in one table.
var (
	ErrTicket      = errors.New("wrong token")                             // or one that was never issued; it uses nothing up
	ErrExpired     = errors.New("expired")                                 // make a fresh preview
	ErrStale       = errors.New("changed since it was seen")               // make a fresh preview against the present state
	ErrState       = errors.New("not possible in its present state")       // the message says which
	ErrNotApproved = errors.New("not approved yet")                        // a person has to approve first
	ErrLevel       = errors.New("this approval is not enough")             // the message says what is
	ErrNoChannel   = errors.New("no way to approve is set up")             // the message says how to set one up
	ErrEvidence    = errors.New("the evidence does not prove it")          // wrong signature, wrong digest, wrong person
	ErrDenied      = errors.New("denied by policy")                        //
	ErrScope       = errors.New("not permitted to this client")            //
	ErrAccount     = errors.New("credentials belong to another account")   //
	ErrVersion     = errors.New("the target works differently now")        // upgraded between approval and apply: preview again
	ErrTampered    = errors.New("stored record was edited")                // look at the ledger; preview again
	ErrNoTarget    = errors.New("no such target in this process")          // another process executes it
	ErrNoUndo      = errors.New("cannot be undone")                        //
	ErrRestored    = errors.New("approved in another life of this ledger") // restored from a copy: preview again
)
