// Package matrix tests the webhook behind a real API server: every write path of every kind that it answers, by what is
// stored, what the writer is told, and what the audit log says.
package matrix
