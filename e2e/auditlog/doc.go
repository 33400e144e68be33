// Package auditlog holds tests alone: what webhook/auditlog reads in the log of a real API server under the shipped
// webhooks.
package auditlog
