// Package upstream sees the tools of any MCP server as a wetink.Target: each call of a guarded tool is a Change.
//
// What is known of a tool is declared, by an operator or in a recipe, as a [Rule]: which tool reads the object that it
// writes, which of what is read an approval is bound to, what takes it back, what makes it risky, and who has to be asked.
// Nothing is guessed: hints of the server decide nothing, and what a Rule does not say is not there. A tool without a Rule
// is guarded, too: its call is shown as it is, it is sent once, and it has no undo.
//
// The payload of an Op is the call itself, and is sent as it stands. Its object is the call that reads it, so that any
// process can read it again. What the server answers is kept as its word; what is proved is what was read back.
package upstream
