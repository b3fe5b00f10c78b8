package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/retrofill/retrofill/executors"
)

// Classify tells what an error means. Serialization failures, deadlocks, lock
// timeouts, and a server that is gone, full or starting are Transient: nothing
// was written. A cancelled context is Permanent.
func (e *Engine) Classify(err error) executors.Class { return classify(err) }

func classify(err error) executors.Class {
	var ambiguous *executors.AmbiguousError
	var server *pgconn.PgError
	var rejected *executors.RejectedError
	switch {
	case err == nil:
		return executors.Permanent
	case errors.Is(err, executors.ErrLocked):
		return executors.Locked
	case errors.As(err, &ambiguous):
		return executors.Ambiguous
	case errors.As(err, &rejected), errors.Is(err, executors.ErrFenced),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return executors.Permanent
	case errors.As(err, &server):
		if passing(server) {
			return executors.Transient
		}
		return executors.Permanent
	case lost(err):
		return executors.Transient
	}
	return executors.Permanent
}

// passing tells whether the same statement may succeed later
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
func passing(err *pgconn.PgError) bool {
	switch err.Code {
	case "55P03", // lock_not_available
		"55006", // object_in_use
		"53300", // too_many_connections
		"57P01", // admin_shutdown
		"57P02", // crash_shutdown
		"57P03", // cannot_connect_now
		"57P05", // idle_session_timeout
		"25P03", // idle_in_transaction_session_timeout
		"72000": // snapshot_too_old
		return true
	}
	return crossed(err) || strings.HasPrefix(err.Code, "08") // connection exceptions
}

// crossed tells whether another transaction was in the way, which is over now
// or soon.
func crossed(err *pgconn.PgError) bool {
	switch err.Code {
	case "40001", // serialization_failure
		"40P01": // deadlock_detected
		return true
	case "23505": // two sessions made the same object with IF NOT EXISTS
		return err.SchemaName == "pg_catalog"
	case "XX000": // two sessions altered the same object
		return strings.Contains(err.Message, "tuple concurrently")
	}
	return false
}

// conflict tells whether a unit may be begun again at once.
func conflict(err error) bool {
	var server *pgconn.PgError
	var ambiguous *executors.AmbiguousError
	var rejected *executors.RejectedError
	return errors.As(err, &server) && crossed(server) && !errors.As(err, &ambiguous) && !errors.As(err, &rejected)
}

// lost tells whether the connection to the server is gone or cannot be made.
func lost(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return !dns.IsNotFound
	}
	var op net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &op) || pgconn.SafeToRetry(err)
}

// cancelled adds the context's error to a statement that was cancelled on the
// server because of it.
func cancelled(ctx context.Context, err error) error {
	why := ctx.Err()
	if err == nil || why == nil || errors.Is(err, why) {
		return err
	}
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "57014" || lost(err) {
		return fmt.Errorf("%w: %w", why, err)
	}
	return err
}

// explain adds the server's detail and hint, and what to do.
func explain(err error) error {
	var server *pgconn.PgError
	var explained *executors.HintError
	if err == nil || !errors.As(err, &server) || errors.As(err, &explained) {
		return err
	}
	var parts []string
	for _, s := range []string{server.Detail, server.Hint, advice(server)} {
		if s = strings.TrimSuffix(strings.TrimSpace(s), "."); s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return err
	}
	return &executors.HintError{Err: err, Hint: strings.Join(parts, "; ")}
}

// advice says what to do next about a server's error, "" if its own text does.
func advice(err *pgconn.PgError) string {
	switch err.Code {
	case "40001", "40P01", "55P03":
		return "another transaction was in the way"
	case "42501":
		return "grant the role what docs/engines.md lists for PostgreSQL"
	case "53100":
		return "the server's disk is full: free space, then resume; nothing of this unit was written"
	case "53200":
		return "the server has no memory left: lower work_mem or the number of groups"
	case "53300":
		return "lower the number of groups, or raise the server's max_connections"
	case "57014":
		return "the statement ran into statement_timeout or was cancelled: raise the timeout in the engine's options"
	case "2BP01":
		return "objects of others depend on this one: drop them first and make them again afterwards"
	case "25006":
		return "the server or the role is read-only"
	}
	return ""
}

// openError tells a failed connection without the connection string: pgx's own
// text names user, database and address.
func openError(err error) error {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) {
		return fmt.Errorf("postgres: open: %w", explain(err))
	}
	e := &ConnectError{Err: err}
	var server *pgconn.PgError
	var dns *net.DNSError
	switch {
	case errors.As(err, &server):
		e.Reason = explain(server).Error()
	case errors.As(err, &dns):
		e.Reason = "the server's name is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Reason = "nothing listens at the server's address and port"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e.Reason = "it took too long"
	case strings.Contains(err.Error(), "tls") || strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "TLS"):
		e.Reason = "TLS could not be set up: check sslmode and the certificates"
	default:
		e.Reason = "the connection broke"
	}
	return e
}

// ConnectError says why the server cannot be reached, without naming it.
type ConnectError struct {
	Reason string
	Err    error // pgx's error, whose text holds user, database and address
}

// Error gives the reason.
func (e *ConnectError) Error() string {
	return "postgres: open: the server cannot be reached: " + e.Reason
}

// Unwrap gives pgx's error, for its class; it is not for showing.
func (e *ConnectError) Unwrap() error { return e.Err }
