package status

import (
	"fmt"
	"strings"

	"github.com/retrofill/retrofill/modeling/diag"
)

// Op is something that happens to an instance: an operation of a user
// (semantics §6.8) or an event of the runner.
type Op uint8

// The operations of a user, then the runner's own events.
const (
	Rerun            Op = iota // again, with its pending descendants
	RerunDescendants           // again, with all its descendants, finished ones too
	ForceRerun                 // this one only, whatever its upstream
	Stop
	SetSuccess
	Pause
	Unpause
	RemoveDependency // forget one upstream for this instance

	EventDue      // its upstream is done
	EventStart    // a worker took it
	EventSucceed  // committed
	EventDryRun   // succeeds without executing
	EventFail     // the last attempt failed
	EventLost     // connection or process lost between send and answer
	EventFound    // the commit marker is in the target
	EventNotFound // the commit marker is not in the target
	EventBlock    // something above failed or was stopped
	EventUnblock  // what blocked it is gone
	numOps        = iota
	firstEvent    = EventDue
)

// Ops gives every operation and event, in declaration order.
func Ops() []Op {
	out := make([]Op, numOps)
	for i := range out {
		out[i] = Op(i)
	}
	return out
}

// String gives the operation as the CLI and the operation log spell it.
func (o Op) String() string {
	names := [...]string{
		"rerun", "rerun_descendants", "force_rerun", "stop", "set_success", "pause", "unpause", "remove_dependency",
		"due", "start", "succeed", "dry_run", "fail", "lost", "found", "not_found", "block", "unblock",
	}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// ParseOp reads an operation of a user as String spells it; events are not
// accepted.
func ParseOp(text string) (Op, error) {
	for o := Op(0); o < firstEvent; o++ {
		if o.String() == text {
			return o, nil
		}
	}
	return 0, fmt.Errorf("status: %q is not an operation", text)
}

// Event tells whether the runner, not a user, does o.
func (o Op) Event() bool { return o >= firstEvent }

// The codes of refusals.
const (
	CodeNotAllowed    = "not_allowed"     // illegal in this status
	CodeStillActive   = "still_active"    // no second run beside the first
	CodeUnresolved    = "unresolved"      // unknown outcome: look it up first
	CodeAlreadyPaused = "already_paused"  // pause twice
	CodeNotPaused     = "not_paused"      // unpause without pause
	CodeNotAll        = "not_all_allowed" // a batch holds an item that does not qualify
	CodeNoDependency  = "no_dependency"   // the upstream named is not one
	CodeEmpty         = "empty"           // no instance at all
)

// cell is one entry of the transition table: a next status, or why not.
type cell struct {
	next   Status
	refuse string // a code; "" = legal
}

// table gives the transition table: status × operation → cell, for one
// instance whose upstream is done. It is written as one row per operation,
// columns in the order of the statuses' declaration, so that the whole
// machine can be read at a glance; docs/ renders it (Markdown, Mermaid).
func table() [numOps][numStatuses]cell {
	to := func(s Status) cell { return cell{next: s} }
	no := cell{refuse: CodeNotAllowed}
	act := cell{refuse: CodeStillActive}
	unk := cell{refuse: CodeUnresolved}
	p, w, r, s, f, b, x, u := to(Pending), to(Waiting), to(Running), to(Succeeded), to(Failed), to(Blocked), to(Stopped), to(Unknown)
	return [numOps][numStatuses]cell{
		//                 pending waiting running succeeded failed blocked stopped unknown
		Rerun:            {no, no, no, w, w, no, w, unk},
		RerunDescendants: {no, no, no, w, w, no, w, unk},
		ForceRerun:       {w, w, act, w, w, w, w, unk},
		Stop:             {no, x, x, no, no, no, no, unk},
		SetSuccess:       {no, no, no, no, s, no, s, unk},
		Pause:            {p, w, r, s, f, b, x, u},
		Unpause:          {p, w, r, s, f, b, x, u},
		RemoveDependency: {p, no, no, no, f, p, x, unk},

		EventDue:      {w, no, no, no, no, no, no, no},
		EventStart:    {no, r, no, no, no, no, no, no},
		EventSucceed:  {no, no, s, no, no, no, no, no},
		EventDryRun:   {s, s, no, no, no, no, no, no},
		EventFail:     {no, no, f, no, no, no, no, no},
		EventLost:     {no, no, u, no, no, no, no, no},
		EventFound:    {no, no, no, no, no, no, no, s},
		EventNotFound: {no, no, no, no, no, no, no, w},
		EventBlock:    {b, no, no, no, no, no, no, no},
		EventUnblock:  {no, no, no, no, no, p, no, no},
	}
}

// Refusal says why an operation is illegal. It is an error and gives a
// Diagnostic for people.
type Refusal struct {
	Code  string   // one of the Code constants
	Op    Op       // the operation asked for
	State State    // the state it was asked in
	Item  string   // the instance, where known
	Items []string // for a batch: the instances that do not qualify, sorted
}

// Error gives the refusal in one line.
func (r *Refusal) Error() string { return r.Diagnostic().Summary }

// Diagnostic gives the refusal for a person, with what to do next.
func (r *Refusal) Diagnostic() diag.Diagnostic {
	who := "the instance"
	if r.Item != "" {
		who = r.Item
	}
	switch r.Code {
	case CodeEmpty:
		return diag.Errorf(r.Code, "there is no instance").
			WithHint("check the selection: nodes, dates and status")
	case CodeNotAll:
		return diag.Errorf(r.Code, "%s refused: %d of the chosen instances do not qualify", r.Op, len(r.Items)).
			WithDetail("%s", strings.Join(r.Items, "\n")).
			WithHint("leave them out, or bring them into a status where %s is legal", r.Op)
	case CodeAlreadyPaused:
		return diag.Errorf(r.Code, "%s is already paused", who).WithHint("nothing to do; unpause lets it go on")
	case CodeNotPaused:
		return diag.Errorf(r.Code, "%s is not paused", who).WithHint("nothing to do")
	case CodeStillActive:
		return diag.Errorf(r.Code, "%s is still %s: no second run beside the first", who, r.State.Status).
			WithHint("stop it first, or wait until it has ended")
	case CodeUnresolved:
		return diag.Errorf(r.Code, "%s has an unknown outcome: the engine may or may not have committed", who).
			WithHint("resume the backfill: it looks the outcome up in the target first")
	case CodeNoDependency:
		return diag.Errorf(r.Code, "%s does not depend on that instance", who).
			WithHint("name one of its direct upstream instances")
	}
	return diag.Errorf(r.Code, "%s is %s: %s is not possible", who, r.State.Status, r.Op).WithHint("%s", hint(r.Op, r.State.Status))
}

// hint says what a user can do instead of an operation that is not allowed.
func hint(o Op, s Status) string {
	switch {
	case s == Blocked && o != Stop:
		return "rerun the failed instance above it, or force-rerun this one"
	case s == Pending && (o == Rerun || o == RerunDescendants):
		return "it has not run yet; force-rerun runs it whatever its upstream"
	case s.Active() && o != Stop:
		return "it is already due; stop it first, or wait until it has ended"
	case s == Succeeded:
		return "a finished instance changes only by rerun or force-rerun"
	case o == SetSuccess:
		return "only failed and stopped instances can be set to success"
	case o == Stop:
		return "only waiting and running instances can be stopped"
	}
	return "see the table of operations in the documentation"
}

// Transition applies op to one instance whose upstream is done (semantics
// §6.8). The flag is changed by Pause and Unpause only.
func Transition(st State, op Op) (State, *Refusal) {
	refuse := func(code string) (State, *Refusal) {
		return st, &Refusal{Code: code, Op: op, State: st}
	}
	if st.Status >= numStatuses || op >= numOps {
		return refuse(CodeNotAllowed)
	}
	c := table()[op][st.Status]
	if c.refuse != "" {
		return refuse(c.refuse)
	}
	next := State{Status: c.next, Paused: st.Paused}
	switch op {
	case Pause:
		if st.Paused {
			return refuse(CodeAlreadyPaused)
		}
		next.Paused = true
	case Unpause:
		if !st.Paused {
			return refuse(CodeNotPaused)
		}
		next.Paused = false
	}
	return next, nil
}
