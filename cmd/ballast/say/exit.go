package say

import (
	"errors"
)

// exitError is an error with an exit code of its own; every other one ends with 1.
type exitError struct {
	error
	code int
}

// Unwrap is the error itself.
func (e exitError) Unwrap() error { return e.error }

// ExitWith is an error that ends the process with that code.
func ExitWith(code int, err error) error { return exitError{err, code} }

// ExitCode is the one that an error ends the process with.
func ExitCode(err error) int {
	var own exitError
	if errors.As(err, &own) {
		return own.code
	}
	return 1
}
