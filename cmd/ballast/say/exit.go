package say

import (
	"errors"
)

// exitError is an error with an exit code of its own; every other one ends with 1.
type exitError struct {
	error
	code  int
	quiet bool // the answer has said it: nothing is printed
}

// Unwrap is the error itself.
func (e exitError) Unwrap() error { return e.error }

// ExitWith is an error that ends the process with that code.
func ExitWith(code int, err error) error { return exitError{error: err, code: code} }

// ExitQuietly ends the process with that code, too, and Error prints nothing of it: an answer, and no failure.
func ExitQuietly(code int, err error) error { return exitError{error: err, code: code, quiet: true} }

// quiet reports whether an error is not for people.
func quiet(err error) bool {
	var own exitError
	return errors.As(err, &own) && own.quiet
}

// ExitCode is the one that an error ends the process with.
func ExitCode(err error) int {
	var own exitError
	if errors.As(err, &own) {
		return own.code
	}
	return 1
}
